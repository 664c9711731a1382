"""What lowered expressions are made of, on both generations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from ...tir.lanes import found_in
from ...tvm import dtype_of
from ...tvm.types import PrimExpr

LOADS = ("BufferLoad", "TensorLoad")
# What an expression is made of, by the name of its node; others have `a` and `b`, or nothing.
_PARTS = {
    "Cast": ("value",), "Broadcast": ("value",), "Ramp": ("base", "stride"), "Not": ("a",),
    "Select": ("condition", "true_value", "false_value"), "Shuffle": (), "Let": ("value", "body"),
}  # fmt: skip


def parts(expr: PrimExpr, kind: str) -> Iterator[PrimExpr]:
    """What an expression is made of, by the name of its node."""
    if kind == "Shuffle":
        yield from expr.vectors
    elif kind in _PARTS:
        yield from (getattr(expr, name) for name in _PARTS[kind])
    else:
        yield from (expr.a, expr.b)


def is_index(value: PrimExpr) -> bool:
    """Whether a value may stand in an index: integers, without loads and calls."""
    dtype = str(dtype_of(value))
    return dtype.startswith(("int", "bool")) and not found_in(
        value, lambda node: type(node).__name__ in (*LOADS, "Call")
    )


def is_zero(offset: PrimExpr) -> bool:
    """Whether an offset is nothing."""
    number = getattr(offset, "value", offset)
    return number is None or int(number) == 0


def bytes_of(extents: Sequence[PrimExpr], dtype: object) -> int:
    """The size of so many elements."""
    scalar, _, lanes = str(dtype).partition("x")
    bits = 8 if scalar == "bool" else np.dtype(scalar).itemsize * 8
    return prod(int(extent) for extent in extents) * int(lanes or 1) * bits // 8
