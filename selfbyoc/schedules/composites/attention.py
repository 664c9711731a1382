"""Attention as one kernel: scaled batch_matmul, optional mask, softmax, batch_matmul."""

from __future__ import annotations

from typing import Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.kernel import Kernel
from ...language.pattern import either, number, op
from ..kernels.attention.compute import attention as compute
from ..kernels.attention.plan import plan
from ..kernels.attention.schedule import schedule
from .sizes import check_sizes

KERNEL = Kernel(plan, compute, schedule)


def _pattern(q: Any, k: Any, v: Any, scale: Any, mask: Any, key_scale: Any) -> Any:
    k = _scaled_keys(k, key_scale)
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


def _scaled_keys(k: Any, key_scale: Any) -> Any:
    """PyTorch's decomposition multiplies queries and keys by the root of the scale each."""
    return either(op.multiply(k, number(key_scale)), k)


_HEADS = {
    "axes": (0, 2, 1, 3)
}  # [batch, sequence, heads, depth] -> [batch, heads, sequence, depth]


def _interleaved(q: Any, k: Any, v: Any, scale: Any, mask: Any, key_scale: Any) -> Any:
    q, v = op.transpose(q, **_HEADS), op.transpose(v, **_HEADS)
    k = either(op.transpose(k, **_HEADS), op.transpose(k, axes=(0, 2, 3, 1)))
    k = _scaled_keys(k, key_scale)
    raw = op.batch_matmul(q, k)
    scores = either(
        op.multiply(raw, scale),
        op.divide(raw, scale),
        op.batch_matmul(op.multiply(q, scale), k),
        raw,
    )
    masked = either(op.add(scores, mask), scores)
    return op.transpose(op.batch_matmul(op.softmax(masked), v), **_HEADS)


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
    check_sizes(match)
    out, batch = second.outputs[0], scores.shape[:-2]
    require(out.shape[:-2] == batch, f"the values have more batches than the scores: {out.type}")
    of_queries = any(
        c.kind in ("multiply", "divide") and c.outputs[0] is first.inputs[0] for c in match.ops
    )
    one = match.scale is None or all(extent == 1 for extent in match.scale.shape)
    require(
        of_queries or one, f"the scores are scaled by more than one number, found {match.scale!r}"
    )


def _check_interleaved(match: Any) -> None:
    _check(match)
    first, second = match.of("batch_matmul")
    transposed = first.attrs["transpose_a"] or second.attrs["transpose_b"]
    require(not transposed, "queries or values are transposed once more")
    keys = _moved_keys(match, first.inputs[1])
    by_depth = (keys.attrs["axes"] == (0, 2, 3, 1)) != first.attrs["transpose_b"]
    require(by_depth, "the queries are not multiplied with the keys along their depth")


def _moved_keys(match: Any, keys: Any) -> Any:
    """The transpose of the keys, before their scale if they have one."""
    for call in match.of("multiply"):
        keys = call.inputs[match.key_scale is call.inputs[0]] if call.outputs[0] is keys else keys
    return next(c for c in match.of("transpose") if c.outputs[0] is keys)


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


def _roots_of_scale(q: Any, k: Any, v: Any, mask: Any) -> Any:
    q, k = op.multiply(q, 0.5), op.multiply(k, 0.25)
    return op.batch_matmul(op.softmax(op.add(op.batch_matmul(q, k), mask)), v)


def _scaled_keys_alone(q: Any, k: Any, v: Any) -> Any:
    scores = op.divide(op.batch_matmul(q, op.multiply(0.25, k), transpose_b=True), 3.0)
    return op.batch_matmul(op.softmax(scores), v)


attention = Composite(
    "attention",
    _pattern,
    check=_check,
    kernel=KERNEL,
    epilogue=True,
    why="the scores of a block of queries stay in the cache",
    cases=(
        Case(_scaled, q=(12, 128, 64), k=(12, 128, 64), v=(12, 128, 64)),
        Case(_scaled, q=(12, 512, 64), k=(12, 512, 64), v=(12, 512, 64)),
        Case(_masked, q=(2, 197, 40), k=(2, 197, 40), v=(2, 197, 40), mask=(1, 197, 197)),
        Case(_masked, q=(3, 33, 64), k=(3, 50, 64), v=(3, 50, 80), mask=(3, 1, 50)),
        Case(_scaled_queries, q=(3, 7, 5), k=(3, 5, 9), v=(3, 11, 9), mask=(3, 7, 9)),
        Case(_divided_queries, q=(2, 13, 10), k=(2, 10, 21), v=(2, 21, 7), mask=(21,)),
        Case(_plain, q=(4, 1, 32), k=(4, 77, 32), v=(4, 77, 32)),
        Case(_roots_of_scale, q=(3, 37, 12), k=(3, 12, 19), v=(3, 19, 7), mask=(1, 37, 19)),
        Case(_roots_of_scale, q=(2, 3, 8), k=(2, 8, 41), v=(2, 41, 8), mask=(1, 1, 41)),
        Case(_scaled_keys_alone, q=(2, 18, 9), k=(2, 23, 9), v=(2, 23, 16)),
        Case(_masked, q=(3, 4, 10), k=(3, 21, 10), v=(3, 21, 19), mask=(1, 4, 21)),
        Case(_plain, q=(2, 3, 45, 32), k=(2, 3, 45, 32), v=(2, 3, 45, 33), generations=("relax",)),
        Case(
            _scaled, q=(1, 4, 100, 64), k=(1, 4, 100, 64), v=(1, 4, 100, 64), generations=("relax",)
        ),
    ),
)  # fmt: skip


def _by_depth(q: Any, k: Any) -> Any:
    q, k = op.transpose(q, **_HEADS), op.transpose(k, axes=(0, 2, 3, 1))
    return op.batch_matmul(q, k)


def _by_rows(q: Any, k: Any) -> Any:
    return op.batch_matmul(q, op.transpose(k, **_HEADS), transpose_b=True)


def _of_heads(scores: Any, v: Any) -> Any:
    weighted = op.batch_matmul(op.softmax(scores), op.transpose(v, **_HEADS))
    return op.transpose(weighted, **_HEADS)


def _divided_heads(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _of_heads(op.add(op.divide(_by_depth(q, k), 8.0), mask), v)


def _scaled_heads(q: Any, k: Any, v: Any) -> Any:
    return _of_heads(op.multiply(_by_rows(op.transpose(q, **_HEADS), k), 0.2), v)


def _heads_of_scaled(q: Any, k: Any, v: Any) -> Any:
    return _of_heads(_by_rows(op.multiply(op.transpose(q, **_HEADS), 0.2), k), v)


def _plain_heads(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _of_heads(op.add(_by_depth(q, k), mask), v)


def _heads_of_roots(q: Any, k: Any, v: Any, mask: Any) -> Any:
    q = op.multiply(op.transpose(q, **_HEADS), 0.4)
    k = op.multiply(op.transpose(k, axes=(0, 2, 3, 1)), 0.4)
    return _of_heads(op.add(op.batch_matmul(q, k), mask), v)


_RELAX = ("relax",)  # Relay's batch_matmul has three axes

attention_of_heads = Composite(
    "attention_of_heads",
    _interleaved,
    check=_check_interleaved,
    kernel=KERNEL,
    epilogue=True,
    why="heads are read and written where dense layers leave them, without transposed copies",
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
            _scaled_heads, generations=_RELAX,
            q=(1, 128, 12, 32), k=(1, 128, 12, 32), v=(1, 128, 12, 32),
        ),
        Case(
            _heads_of_roots, generations=_RELAX,
            q=(1, 21, 3, 16), k=(1, 35, 3, 16), v=(1, 35, 3, 16), mask=(1, 1, 21, 35),
        ),
        Case(
            _plain_heads, generations=_RELAX,
            q=(1, 3, 4, 64), k=(1, 77, 4, 64), v=(1, 77, 4, 64), mask=(1, 1, 3, 77),
        ),
    ),
)  # fmt: skip
