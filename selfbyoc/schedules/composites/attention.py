"""Attention as one kernel: scaled batch_matmul, optional mask, softmax, batch_matmul."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.pattern import either, number, op
from ..kernels.attention.compute import attention as compute
from ..kernels.attention.plan import plan
from ..kernels.attention.schedule import schedule
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node

KERNEL = Kernel(plan, compute, schedule)


def _pattern(
    q: Node, k: Node, v: Node, scale: Node, mask: Node, key_scale: Node, second_mask: Node,
    slope: Node, cap: Node,
) -> Node:  # fmt: skip
    scores = perhaps_capped(scaled_scores(q, k, scale, key_scale), slope, cap)
    # A mask of one axis reads as a bias.
    masked = either(twice_masked(scores, mask, second_mask), op.bias_add(scores, mask), scores)
    return op.batch_matmul(op.softmax(masked), v)


def twice_masked(scores: Node, mask: Node, second_mask: Node) -> Node:
    """MPNet adds what it knows of positions, and then its mask. Queries that share keys are rows of
    one product, and each group of them has the same mask.
    """
    once = op.add(scores, either(op.tile(mask), mask))
    return either(op.add(once, either(op.tile(second_mask), second_mask)), once)


def scaled_scores(q: Node, k: Node, scale: Node, key_scale: Node) -> Node:
    """PyTorch's decomposition multiplies queries and keys by the root of the scale each."""
    k = either(op.multiply(k, number(key_scale)), k)
    raw = op.batch_matmul(q, k)
    return either(
        op.multiply(raw, scale),
        op.divide(raw, scale),
        op.batch_matmul(op.multiply(q, scale), k),
        op.batch_matmul(op.divide(q, scale), k),
        raw,
    )


def perhaps_capped(scores: Node, slope: Node, cap: Node) -> Node:
    """Gemma 2 caps its scores: cap * tanh(scores / cap)."""
    slope = number(slope)
    slanted = either(op.divide(scores, slope), op.multiply(scores, slope), scores)
    return either(op.multiply(op.tanh(slanted), number(cap)), scores)


def check_softmax(match: Match) -> None:
    """The softmax of the first product's scores is over the keys, and what the second one reads."""
    _, second = match.own.of("batch_matmul")
    softmax = match.op("softmax")
    scores = softmax.inputs[0]
    require(scores.dtype == "float32", f"only float32 is scheduled, found {scores.dtype}")
    axis, keys = softmax.attrs["axis"] % scores.ndim, scores.ndim - 1
    require(axis == keys, f"{softmax.name} is over axis {axis}, not over the keys, axis {keys}")
    require(
        not second.attrs["transpose_a"], "the probabilities are transposed before they are used"
    )
    check_sizes(match)
    out, batch = second.outputs[0], scores.shape[:-2]
    require(out.shape[:-2] == batch, f"the values have more batches than the scores: {out.type}")


def check_attention(match: Match) -> None:
    check_softmax(match)
    first, _ = match.of("batch_matmul")
    of_queries = any(
        c.kind in ("multiply", "divide") and c.outputs[0] is first.inputs[0] for c in match.ops
    )
    one = match.scale is None or all(extent == 1 for extent in match.scale.shape)
    require(
        of_queries or one, f"the scores are scaled by more than one number, found {match.scale!r}"
    )
    for tile in match.of("tile"):
        *others, _, last = tile.attrs["repeats"]
        is_of_rows = {*others, last} == {1} and len(others) + 2 == tile.inputs[0].ndim
        require(is_of_rows, f"{tile.name} repeats more than the rows of a mask, found {tile.attrs}")


def _scaled(q: Node, k: Node, v: Node) -> Node:
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.125)
    return op.batch_matmul(op.softmax(scores), v)


def _masked(q: Node, k: Node, v: Node, mask: Node) -> Node:
    scores = op.divide(op.batch_matmul(q, k, transpose_b=True), 8.0)
    return op.batch_matmul(op.softmax(op.add(scores, mask), axis=2), v)


def _scaled_queries(q: Node, k: Node, v: Node, mask: Node) -> Node:
    scores = op.add(mask, op.batch_matmul(op.multiply(0.1, q), k))
    return op.batch_matmul(op.softmax(scores), v, transpose_b=True)


def _position_and_mask(q: Node, k: Node, v: Node, bias: Node, mask: Node) -> Node:
    scores = op.divide(op.batch_matmul(q, k, transpose_b=True), 8.0)
    return op.batch_matmul(op.softmax(op.add(op.add(scores, bias), mask)), v)


def _plain(q: Node, k: Node, v: Node) -> Node:
    return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)


def _divided_queries(q: Node, k: Node, v: Node, mask: Node) -> Node:
    scores = op.bias_add(op.batch_matmul(op.divide(q, 3.0), k), mask, axis=2)
    return op.batch_matmul(op.softmax(scores), v)


def _roots_of_scale(q: Node, k: Node, v: Node, mask: Node) -> Node:
    q, k = op.multiply(q, 0.5), op.multiply(k, 0.25)
    return op.batch_matmul(op.softmax(op.add(op.batch_matmul(q, k), mask)), v)


def _scaled_keys_alone(q: Node, k: Node, v: Node) -> Node:
    scores = op.divide(op.batch_matmul(q, op.multiply(0.25, k), transpose_b=True), 3.0)
    return op.batch_matmul(op.softmax(scores), v)


def _capped(q: Node, k: Node, v: Node) -> Node:
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.25)
    capped = op.multiply(op.tanh(op.divide(scores, 5.0)), 5.0)
    return op.batch_matmul(op.softmax(capped), v)


def _capped_and_masked(q: Node, k: Node, v: Node, mask: Node) -> Node:
    capped = op.multiply(3.0, op.tanh(op.batch_matmul(op.divide(q, 5.0), k)))
    return op.batch_matmul(op.softmax(op.add(capped, mask)), v)


def _capped_roots(q: Node, k: Node, v: Node, bias: Node, mask: Node) -> Node:
    scores = op.batch_matmul(op.multiply(q, 0.5), op.multiply(k, 0.75))
    capped = op.multiply(op.tanh(op.multiply(scores, 0.2)), 5.0)
    return op.batch_matmul(op.softmax(op.add(op.add(capped, bias), mask)), v)


def _of_groups(q: Node, k: Node, v: Node, mask: Node) -> Node:
    """Queries of three heads that share keys, row after row."""
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.5)
    masked = op.add(scores, op.tile(mask, repeats=(1, 3, 1)))
    return op.batch_matmul(op.softmax(masked), v)


def _of_halves(q: Node, k: Node, v: Node) -> Node:
    """As a model of bfloat16 is read."""
    scores = op.batch_matmul(q, op.half_factor(k), transpose_b=True)
    return op.batch_matmul(op.softmax(scores), op.half_factor(v))


attention = Composite(
    "attention",
    _pattern,
    check=check_attention,
    kernel=KERNEL,
    epilogue=True,
    why="the scores of a block of queries stay in the cache",
    cases=(
        Case(_scaled, q=(12, 128, 64), k=(12, 128, 64), v=(12, 128, 64)),
        Case(_scaled, q=(12, 512, 64), k=(12, 512, 64), v=(12, 512, 64)),
        Case(_masked, q=(2, 197, 40), k=(2, 197, 40), v=(2, 197, 40), mask=(1, 197, 197)),
        Case(_masked, q=(3, 33, 64), k=(3, 50, 64), v=(3, 50, 80), mask=(3, 1, 50)),
        Case(_scaled_queries, q=(3, 7, 5), k=(3, 5, 9), v=(3, 11, 9), mask=(3, 7, 9)),
        # Keys are packed.
        Case(
            _scaled_queries, q=(2, 135, 64), k=(2, 64, 210), v=(2, 61, 210), mask=(2, 135, 210)
        ),
        Case(_divided_queries, q=(2, 13, 10), k=(2, 10, 21), v=(2, 21, 7), mask=(21,)),
        Case(
            _position_and_mask, q=(3, 33, 64), k=(3, 50, 64), v=(3, 50, 80), bias=(3, 33, 50),
            mask=(1, 1, 50),
        ),
        Case(
            _position_and_mask, q=(3, 2, 24), k=(3, 19, 24), v=(3, 19, 17), bias=(1, 2, 19),
            mask=(3, 1, 19),
        ),
        Case(_plain, q=(4, 1, 32), k=(4, 77, 32), v=(4, 77, 32)),
        Case(_roots_of_scale, q=(3, 37, 12), k=(3, 12, 19), v=(3, 19, 7), mask=(1, 37, 19)),
        Case(_roots_of_scale, q=(2, 3, 8), k=(2, 8, 41), v=(2, 41, 8), mask=(1, 1, 41)),
        Case(_scaled_keys_alone, q=(2, 18, 9), k=(2, 23, 9), v=(2, 23, 16)),
        Case(_masked, q=(3, 4, 10), k=(3, 21, 10), v=(3, 21, 19), mask=(1, 4, 21)),
        Case(_capped, q=(4, 45, 24), k=(4, 53, 24), v=(4, 53, 21)),
        Case(_capped, q=(3, 1, 32), k=(3, 77, 32), v=(3, 77, 32)),
        Case(_capped_and_masked, q=(2, 37, 20), k=(2, 20, 51), v=(2, 51, 40), mask=(1, 37, 51)),
        Case(
            _capped_roots, q=(2, 29, 16), k=(2, 16, 35), v=(2, 35, 16), bias=(2, 29, 35),
            mask=(1, 1, 35),
        ),
        Case(_of_groups, q=(2, 39, 20), k=(2, 51, 20), v=(2, 51, 24), mask=(1, 13, 51)),
        Case(_of_groups, q=(2, 3, 16), k=(2, 19, 16), v=(2, 19, 11), mask=(2, 1, 19)),
        Case(_of_halves, q=(2, 37, 33), k=(2, 51, 33), v=(2, 51, 21), generations=("relax",)),
        Case(_plain, q=(2, 3, 45, 32), k=(2, 3, 45, 32), v=(2, 3, 45, 33), generations=("relax",)),
        Case(
            _scaled, q=(1, 4, 100, 64), k=(1, 4, 100, 64), v=(1, 4, 100, 64), generations=("relax",)
        ),
    ),
)  # fmt: skip
