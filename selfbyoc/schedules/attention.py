"""Attention as one kernel: scaled batch_matmul, optional mask, softmax, batch_matmul."""

from __future__ import annotations

from typing import Any

from ..composite import Case, Composite, require
from ..partition.pattern import either, op
from .attention_compute import attention as compute
from .attention_schedule import schedule


def _pattern(q: Any, k: Any, v: Any, scale: Any, mask: Any) -> Any:
    raw = op.batch_matmul(q, k)
    scores = either(
        op.multiply(raw, scale),
        op.divide(raw, scale),
        op.batch_matmul(op.multiply(q, scale), k),
        op.batch_matmul(op.divide(q, scale), k),
        raw,
    )
    # A mask of one axis reads as a bias.
    masked = either(op.add(scores, mask), op.bias_add(scores, mask), scores)
    return op.batch_matmul(op.softmax(masked), v)


def _check(match: Any) -> None:
    first, second = match.of("batch_matmul")
    softmax = match.op("softmax")
    scores = softmax.inputs[0]
    require(scores.dtype == "float32", f"only float32 is scheduled, found {scores.dtype}")
    axis, keys = softmax.attrs["axis"] % scores.ndim, scores.ndim - 1
    require(axis == keys, f"{softmax.name} is over axis {axis}, not over the keys, axis {keys}")
    require(
        not second.attrs["transpose_a"], "the probabilities are transposed before they are used"
    )
    raw = first.outputs[0]
    require(
        raw.shape == scores.shape,
        f"the mask has more elements than the scores: it makes {raw.type} {scores.type}",
    )
    of_queries = match.ops[0] is not first
    one = match.scale is None or all(extent == 1 for extent in match.scale.shape)
    require(
        of_queries or one, f"the scores are scaled by more than one number, found {match.scale!r}"
    )


def _scaled(q: Any, k: Any, v: Any) -> Any:
    scores = op.multiply(op.batch_matmul(q, k, transpose_b=True), 0.125)
    return op.batch_matmul(op.softmax(scores), v)


def _masked(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = op.divide(op.batch_matmul(q, k, transpose_b=True), 8.0)
    return op.batch_matmul(op.softmax(op.add(scores, mask), axis=2), v)


def _scaled_queries(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = op.add(mask, op.batch_matmul(op.multiply(0.1, q), k))
    return op.batch_matmul(op.softmax(scores), v, transpose_b=True)


def _plain(q: Any, k: Any, v: Any) -> Any:
    return op.batch_matmul(op.softmax(op.batch_matmul(q, k, transpose_b=True)), v)


def _divided_queries(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = op.bias_add(op.batch_matmul(op.divide(q, 3.0), k), mask, axis=2)
    return op.batch_matmul(op.softmax(scores), v)


attention = Composite(
    "attention",
    _pattern,
    {"llvm": schedule, "c": schedule},
    check=_check,
    compute=compute,
    why="the scores of a block of queries stay in the cache",
    cases=(
        Case(_scaled, q=(12, 128, 64), k=(12, 128, 64), v=(12, 128, 64)),
        Case(_scaled, q=(12, 512, 64), k=(12, 512, 64), v=(12, 512, 64)),
        Case(_masked, q=(2, 197, 40), k=(2, 197, 40), v=(2, 197, 40), mask=(1, 197, 197)),
        Case(_masked, q=(3, 33, 64), k=(3, 50, 64), v=(3, 50, 80), mask=(3, 1, 50)),
        Case(_scaled_queries, q=(3, 7, 5), k=(3, 5, 9), v=(3, 11, 9), mask=(3, 7, 9)),
        Case(_divided_queries, q=(2, 13, 10), k=(2, 10, 21), v=(2, 21, 7), mask=(21,)),
        Case(_plain, q=(4, 1, 32), k=(4, 77, 32), v=(4, 77, 32)),
        Case(_plain, q=(2, 3, 45, 32), k=(2, 3, 45, 32), v=(2, 3, 45, 33), generations=("relax",)),
        Case(
            _scaled, q=(1, 4, 100, 64), k=(1, 4, 100, 64), v=(1, 4, 100, 64), generations=("relax",)
        ),
    ),
)  # fmt: skip
