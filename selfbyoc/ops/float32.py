"""What functions of float32 are made of; what is narrower is computed in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ..tvm import dtype_of, tir
from ..tvm.types import Attr, PrimExpr


def f32(value: float) -> PrimExpr:
    """A constant."""
    return tir.const(value, "float32")


def polynomial(x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """Of the highest power first."""
    total = f32(coefficients[0])
    for c in coefficients[1:]:
        total = total * x + f32(c)
    return total


def of_multiple(coefficients: Sequence[float], times: float) -> list[float]:
    """Of the polynomial in x that is `coefficients` of times * x."""
    last = len(coefficients) - 1
    return [c * times ** (last - n) for n, c in enumerate(coefficients)]


def is_f32(x: PrimExpr) -> bool:
    """Whether that is its dtype."""
    return dtype_of(x) == "float32"


def in_f32(function: Callable[..., PrimExpr]) -> Callable[..., PrimExpr]:
    """The function of what is narrower than float32, computed in float32."""

    @functools.wraps(function)
    def wide(x: PrimExpr, *options: Attr) -> PrimExpr:
        dtype = dtype_of(x)
        if dtype not in ("float16", "bfloat16"):
            return function(x, *options)
        return tir.Cast(dtype, function(tir.Cast("float32", x), *options))

    return wide
