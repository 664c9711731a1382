"""Arithmetic of an op by its shapes: what a kernel must compute, however it does it.

The convention: a multiply-add is 2 operations, any other operation on one element is 1, exp and
erf too; comparing (max, relu, clip) counts; moving data (reshape, transpose, concatenate, cast)
does not. Softmax is 5 an element (max, subtract, exp, sum, divide), layer_norm 8 (two sums, a
difference, a square, two normalising and two affine operations).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...codegen.info.op_info import OpInfo

_MOVES = ("broadcast_to", "cast", "concatenate", "reshape", "transpose")
_PER_ELEMENT = {"batch_norm": 2, "gelu": 5, "layer_norm": 8, "sigmoid": 4, "silu": 5, "softmax": 5}
MATMULS = ("batch_matmul", "conv2d", "dense")


@dataclass(frozen=True)
class Arithmetic:
    """Operations of one kind of op, and how many such ops there are."""

    kind: str
    count: int
    flops: int


def _size(op: OpInfo) -> int:
    return math.prod(op.outputs[0][0])


def _conv2d(op: OpInfo) -> int:
    kernel, layout = op.inputs[1][0], str(op.attrs.get("kernel_layout", "OIHW"))
    return 2 * _size(op) * math.prod(kernel) // kernel[layout.index("O")]


def _dense(op: OpInfo) -> int:
    return 2 * _size(op) * op.inputs[0][0][-1]


def _batch_matmul(op: OpInfo) -> int:
    return 2 * _size(op) * op.inputs[0][0][-2 if op.attrs.get("transpose_a") else -1]


def _pool(op: OpInfo) -> int:
    return _size(op) * math.prod(op.attrs["pool_size"])


def _reduction(op: OpInfo) -> int:
    return math.prod(op.inputs[0][0])


def _lrn(op: OpInfo) -> int:
    return _size(op) * (2 * int(op.attrs.get("size", 1)) + 4)


_FLOPS: dict[str, Callable[[OpInfo], int]] = {
    "avg_pool2d": _pool,
    "batch_matmul": _batch_matmul,
    "conv2d": _conv2d,
    "dense": _dense,
    "global_avg_pool2d": _reduction,
    "lrn": _lrn,
    "max": _reduction,
    "max_pool2d": _pool,
    "mean": _reduction,
    "sum": _reduction,
}


def flops_of(op: OpInfo) -> int:
    """Operations that one op asks for."""
    if op.kind in _FLOPS:
        return _FLOPS[op.kind](op)
    return 0 if op.kind in _MOVES else _size(op) * _PER_ELEMENT.get(op.kind, 1)


def multiply_adds_of(op: OpInfo) -> int:
    """Multiply-adds of a convolution or a product of matrices; 0 for other ops."""
    return flops_of(op) // 2 if op.kind in MATMULS else 0


def by_kind(ops: Iterable[OpInfo]) -> tuple[Arithmetic, ...]:
    """Operations by kind of op, the most first."""
    counts: dict[str, int] = {}
    sums: dict[str, int] = {}
    for op in ops:
        counts[op.kind] = counts.get(op.kind, 0) + 1
        sums[op.kind] = sums.get(op.kind, 0) + flops_of(op)
    found = [Arithmetic(kind, counts[kind], sums[kind]) for kind in counts]
    return tuple(sorted(found, key=lambda a: (-a.flops, a.kind)))
