"""Rounding to integers, as expressions that vectorise."""

from __future__ import annotations

from ..tvm import dtype_of, tir
from ..tvm.rounding import nearbyint
from ..tvm.types import PrimExpr


def round_even(x: PrimExpr) -> PrimExpr:
    """To the nearest integer, halves to even."""
    return nearbyint(x)


def round_away(x: PrimExpr) -> PrimExpr:
    """To the nearest integer, halves away from zero: vectors have no instruction for C's `round`.

    The addend is the largest float below a half: with 0.5 itself, 0.49999997 would become 1.
    """
    dtype = dtype_of(x)
    half = _BELOW_HALF[dtype]
    sign = tir.Select(x < tir.const(0, dtype), tir.const(-half, dtype), tir.const(half, dtype))
    return tir.trunc(x + sign)


_BELOW_HALF = {"float16": 0.5 - 2.0**-12, "float32": 0.5 - 2.0**-25, "float64": 0.5 - 2.0**-54}
