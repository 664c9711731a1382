"""Attention whose keys and values lie as dense layers and caches leave them: [batch, sequence,
heads, depth]; so may its queries and its result, each by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...graph import OpCall, Value
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.pattern import either, op
from ..kernels.attention.forms import HEADS
from .attention import KERNEL, check_attention, perhaps_capped, scaled_scores, twice_masked

if TYPE_CHECKING:
    from ...language.nodes import Node

_HEADS = {"axes": HEADS}


def _interleaved(
    q: Node, k: Node, v: Node, scale: Node, mask: Node, key_scale: Node, second_mask: Node,
    slope: Node, cap: Node,
) -> Node:  # fmt: skip
    # Queries that something turns on the way lie as rows of heads.
    q, v = either(op.transpose(q, **_HEADS), q), op.transpose(v, **_HEADS)
    k = either(op.transpose(k, **_HEADS), op.transpose(k, axes=(0, 2, 3, 1)))
    scores = perhaps_capped(scaled_scores(q, k, scale, key_scale), slope, cap)
    masked = either(twice_masked(scores, mask, second_mask), scores)
    weighted = op.batch_matmul(op.softmax(masked), v)
    return either(op.transpose(weighted, **_HEADS), weighted)


def _check_interleaved(match: Match) -> None:
    check_attention(match)
    first, second = match.of("batch_matmul")
    transposed = first.attrs["transpose_a"] or second.attrs["transpose_b"]
    require(not transposed, "queries or values are transposed once more")
    keys = _moved_keys(match, first.inputs[1])
    by_depth = (keys.attrs["axes"] == (0, 2, 3, 1)) != first.attrs["transpose_b"]
    require(by_depth, "the queries are not multiplied with the keys along their depth")


def _moved_keys(match: Match, keys: Value) -> OpCall:
    """The transpose of the keys, before their scale if they have one."""
    for call in match.of("multiply"):
        keys = call.inputs[match.key_scale is call.inputs[0]] if call.outputs[0] is keys else keys
    return next(c for c in match.of("transpose") if c.outputs[0] is keys)


def _by_depth(q: Node, k: Node) -> Node:
    q, k = op.transpose(q, **_HEADS), op.transpose(k, axes=(0, 2, 3, 1))
    return op.batch_matmul(q, k)


def _by_rows(q: Node, k: Node) -> Node:
    return op.batch_matmul(q, op.transpose(k, **_HEADS), transpose_b=True)


def _of_heads(scores: Node, v: Node) -> Node:
    weighted = op.batch_matmul(op.softmax(scores), op.transpose(v, **_HEADS))
    return op.transpose(weighted, **_HEADS)


def _divided_heads(q: Node, k: Node, v: Node, mask: Node) -> Node:
    return _of_heads(op.add(op.divide(_by_depth(q, k), 8.0), mask), v)


def _scaled_heads(q: Node, k: Node, v: Node) -> Node:
    return _of_heads(op.multiply(_by_rows(op.transpose(q, **_HEADS), k), 0.2), v)


def _heads_of_scaled(q: Node, k: Node, v: Node) -> Node:
    return _of_heads(_by_rows(op.multiply(op.transpose(q, **_HEADS), 0.2), k), v)


def _heads_of_divided(q: Node, k: Node, v: Node) -> Node:
    return _of_heads(_by_rows(op.divide(op.transpose(q, **_HEADS), 4.0), k), v)


def _plain_heads(q: Node, k: Node, v: Node, mask: Node) -> Node:
    return _of_heads(op.add(_by_depth(q, k), mask), v)


def _heads_of_positions(q: Node, k: Node, v: Node, bias: Node, mask: Node) -> Node:
    scores = op.add(op.divide(_by_depth(q, k), 4.0), bias)
    return _of_heads(op.add(scores, mask), v)


def _heads_of_roots(q: Node, k: Node, v: Node, mask: Node) -> Node:
    q = op.multiply(op.transpose(q, **_HEADS), 0.4)
    k = op.multiply(op.transpose(k, axes=(0, 2, 3, 1)), 0.4)
    return _of_heads(op.add(op.batch_matmul(q, k), mask), v)


def _capped_heads(q: Node, k: Node, v: Node, mask: Node) -> Node:
    scores = op.divide(op.multiply(_by_depth(q, k), 0.25), 5.0)
    return _of_heads(op.add(op.multiply(op.tanh(scores), 5.0), mask), v)


def _of_groups(q: Node, k: Node, v: Node, mask: Node) -> Node:
    scores = op.batch_matmul(q, op.transpose(k, axes=(0, 2, 3, 1)))
    masked = op.add(op.multiply(scores, 0.125), op.tile(mask, repeats=(1, 1, 7, 1)))
    return op.batch_matmul(op.softmax(masked), op.transpose(v, **_HEADS))


def _of_rows(q: Node, k: Node, v: Node, mask: Node) -> Node:
    scores = op.batch_matmul(q, op.transpose(k, axes=(0, 2, 3, 1)))
    masked = op.add(op.multiply(scores, 0.125), mask)
    return op.batch_matmul(op.softmax(masked), op.transpose(v, **_HEADS))


def _of_rows_to_heads(q: Node, k: Node, v: Node) -> Node:
    return _of_heads(_by_rows(op.multiply(q, 0.3), k), v)


def _of_heads_to_rows(q: Node, k: Node, v: Node) -> Node:
    scores = op.divide(_by_depth(q, k), 5.0)
    return op.batch_matmul(op.softmax(scores), op.transpose(v, **_HEADS))


_RELAX = ("relax",)  # Relay's batch_matmul has three axes

attention_of_heads = Composite(
    "attention_of_heads",
    _interleaved,
    check=_check_interleaved,
    kernel=KERNEL,
    epilogue=True,
    why="heads are read and written as dense layers leave them",
    cases=(
        Case(
            _divided_heads, generations=_RELAX,
            q=(2, 37, 3, 32), k=(2, 50, 3, 32), v=(2, 50, 3, 32), mask=(2, 1, 1, 50),
        ),
        Case(
            _heads_of_scaled, generations=_RELAX,
            q=(1, 45, 2, 24), k=(1, 45, 2, 24), v=(1, 45, 2, 20),
        ),
        Case(
            _heads_of_divided, generations=_RELAX,
            q=(2, 19, 3, 16), k=(2, 26, 3, 16), v=(2, 26, 3, 11),
        ),
        Case(
            _scaled_heads, generations=_RELAX,
            q=(1, 128, 12, 32), k=(1, 128, 12, 32), v=(1, 128, 12, 32),
        ),
        Case(  # one head of keys and values serves all queries
            _scaled_heads, generations=_RELAX,
            q=(1, 101, 3, 64), k=(1, 210, 1, 64), v=(1, 210, 1, 64),
        ),
        Case(  # keys and values are packed
            _scaled_heads, generations=_RELAX,
            q=(1, 101, 3, 64), k=(1, 210, 3, 64), v=(1, 210, 3, 61),
        ),
        Case(
            _heads_of_roots, generations=_RELAX,
            q=(1, 21, 3, 16), k=(1, 35, 3, 16), v=(1, 35, 3, 16), mask=(1, 1, 21, 35),
        ),
        Case(
            _heads_of_positions, generations=_RELAX,
            q=(2, 29, 3, 16), k=(2, 35, 3, 16), v=(2, 35, 3, 16), bias=(1, 3, 29, 35),
            mask=(2, 1, 1, 35),
        ),
        Case(
            _plain_heads, generations=_RELAX,
            q=(1, 3, 4, 64), k=(1, 77, 4, 64), v=(1, 77, 4, 64), mask=(1, 1, 3, 77),
        ),
        Case(
            _capped_heads, generations=_RELAX,
            q=(2, 37, 3, 24), k=(2, 50, 3, 24), v=(2, 50, 3, 21), mask=(2, 1, 37, 50),
        ),
        Case(
            _of_rows, generations=_RELAX,
            q=(1, 2, 7, 64), k=(1, 93, 2, 64), v=(1, 93, 2, 64), mask=(1, 1, 7, 93),
        ),
        Case(
            _of_groups, generations=_RELAX,
            q=(1, 2, 77, 64), k=(1, 93, 2, 64), v=(1, 93, 2, 64), mask=(1, 1, 11, 93),
        ),
        Case(
            _of_rows_to_heads, generations=_RELAX,
            q=(2, 3, 35, 24), k=(2, 41, 3, 24), v=(2, 41, 3, 21),
        ),
        Case(
            _of_heads_to_rows, generations=_RELAX,
            q=(2, 1, 3, 16), k=(2, 51, 3, 16), v=(2, 51, 3, 11),
        ),
    ),
)  # fmt: skip
