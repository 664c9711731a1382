"""Levels as the CPU rounds to them, and levels that are only looked at as numbers.

x86 rounds and converts at once, where `nearbyint` and a cast are two steps and the zero point a
third; limits that the value keeps by itself tell LLVM that a byte is packed with saturation, which
is one instruction and not three. AVX-512 has one that cuts off.

A value that is rounded to levels and multiplied by their scale again, as quantisers write it before
a residual, need not become a byte in between:

    float32(int32(uint8(nearest(q, zero))) - zero)     nearbyint(q)
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..machine.features import architecture, features_of
from ..tvm import GENERATION, dtype_of, structural_equal, tir, walk
from ..tvm.own_ops import NEAREST, has_own, is_own, lanes_of, llvm, nearest_written_out, own_op
from ..tvm.rewrite import map_calls, mapped
from ..tvm.rounding import nearbyint
from ..tvm.types import PrimExpr, PrimFunc, Target


def with_nearest(func: PrimFunc, target: Target) -> PrimFunc:
    """A scheduled function of a CPU whose levels are so."""
    if not has_own(func, NEAREST):
        return func
    named: dict[Any, Any] = {}
    walk(func.body, lambda let: named.__setitem__(let.var, let.value), "Let")
    func = mapped(func, "Cast", lambda cast: _number(cast, named))
    # LLVM 10 has no such vectors; Relay's own ops round halves away from zero in any case.
    if architecture(target) != "x86_64" or GENERATION == "relay":
        return func
    made = _MADE["avx512f" in features_of(target)]
    return map_calls(func, lambda c: made(*c.args) if is_own(c, NEAREST) else c)


def _number(cast: PrimExpr, named: dict[PrimExpr, PrimExpr]) -> PrimExpr:
    """A cast of levels less their zero point to floats, as the floats that they were."""
    if dtype_of(cast) != "float32" or dtype_of(cast.value) != "int32":
        return cast
    level, zero = cast.value, tir.const(0, "int32")
    if isinstance(level, tir.Sub):
        level, zero = level.a, level.b
    for _ in range(2):  # as int32, as the dtype of levels
        level = named.get(level, level) if isinstance(level, tir.Var) else level
        if not isinstance(level, tir.Cast):
            return cast
        level = level.value
    same = is_own(level, NEAREST) and structural_equal(level.args[1], zero)
    return nearbyint(level.args[0]) if same else cast


def _by_x86(cuts: bool, over: PrimExpr, zero: PrimExpr, low: PrimExpr, high: PrimExpr) -> PrimExpr:
    lanes = lanes_of(over)
    if lanes == 1:
        return nearest_written_out(over, zero, low, high)
    level = llvm("llvm.lrint", f"int32x{lanes}", over) + zero
    return level if cuts else tir.Max(tir.Min(level, high), low)


_MADE = {
    cuts: own_op(f"{NEAREST}.{'avx512' if cuts else 'x86'}", partial(_by_x86, cuts))
    for cuts in (True, False)
}
