"""Limits of levels that the value keeps by itself.

One of them is not above 0: it is none to what is no less than 0, such as what a ReLU gave.
"""

from __future__ import annotations

from typing import Any

from ..tvm import tir, walk
from ..tvm.own_ops import WITHIN, has_own, is_own
from ..tvm.rewrite import map_calls
from ..tvm.types import PrimExpr, PrimFunc


def with_levels(func: PrimFunc) -> PrimFunc:
    """A scheduled function of a CPU without such limits."""
    if not has_own(func, WITHIN):
        return func
    named: dict[Any, Any] = {}
    walk(func.body, lambda let: named.__setitem__(let.var, let.value), "Let")

    def change(call: PrimExpr) -> PrimExpr:
        if not is_own(call, WITHIN):
            return call
        x, low, high = call.args
        value = tir.Min(high, x)
        return value if _is_not_below_zero(x, named) else tir.Max(low, value)

    return map_calls(func, change)


def _is_not_below_zero(x: PrimExpr, named: dict[PrimExpr, PrimExpr]) -> bool:
    """Whether it says so itself; a NaN may be one."""
    if isinstance(x, tir.Var):
        return x in named and _is_not_below_zero(named[x], named)
    if isinstance(x, tir.FloatImm):
        return float(x.value) >= 0
    if isinstance(x, tir.Max):
        return any(_is_not_below_zero(side, named) for side in (x.a, x.b))
    if isinstance(x, tir.Min):
        return all(_is_not_below_zero(side, named) for side in (x.a, x.b))
    return False
