"""PrimFuncs for the target `c`, whose code generator (0.17 and 0.27) prints some of them wrong."""

from __future__ import annotations

import math

import numpy as np

from . import GENERATION, dtype_of, tir
from .rewrite import map_calls
from .selects import without_max_min
from .types import PrimExpr, PrimFunc

if GENERATION == "relax":
    import tvm_ffi

_SHIFT = {"float32": "ldexpf", "float64": "ldexp"}
_ROOT = {"float32": "sqrtf", "float64": "sqrt"}
_BITS = 23  # of whole numbers that have 7 digits
_INFINITE = 2000  # an exponent that gives infinity


def for_c(func: PrimFunc) -> PrimFunc:
    """A scheduled PrimFunc as TVM's C is right of it."""
    return without_max_min(with_exact_floats(with_c_rounding(func)))


def with_c_rounding(func: PrimFunc) -> PrimFunc:
    """A PrimFunc that rounds by C's own functions: 0.17's C knows none of TVM's ("Unresolved call
    Op(tir.round)").
    """
    if GENERATION == "relax":
        return func

    def change(call: PrimExpr) -> PrimExpr:
        name = getattr(call.op, "name", "").removeprefix("tir.")
        dtype = dtype_of(call)
        if name not in ("nearbyint", "round", "trunc") or dtype not in _SHIFT:
            return call
        suffix = "f" if dtype == "float32" else ""
        return tir.call_pure_extern(dtype, f"{name}{suffix}", *call.args)

    return map_calls(func, change)


def with_exact_floats(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose floats are sums of `ldexp(whole, exponent)` where 7 digits are too few: no
    more are printed, so that the power of -inf was 3.9e-39; infinity is `inff` then, which no C
    has, and NaN `nanf`, which is a function. C compilers compute them.
    """
    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.FloatImm, _exact),))
    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, _exact, ["FloatImm"]))


def _exact(node: PrimExpr) -> PrimExpr:
    dtype, value = dtype_of(node), float(node.value)
    if dtype not in _SHIFT:
        return node
    if math.isnan(value):
        return tir.call_pure_extern(dtype, _ROOT[dtype], tir.const(-1.0, dtype))
    one = np.dtype(dtype).type
    if not math.isinf(value) and one(f"{value:.6e}") == one(value):
        return node
    made = [
        tir.call_pure_extern(
            dtype, _SHIFT[dtype], tir.const(float(whole), dtype), tir.const(exponent, "int32")
        )
        for whole, exponent in _parts(float(one(value)))
    ]
    return sum(made[1:], made[0])


def _parts(value: float) -> list[tuple[int, int]]:
    """Pairs (whole number, exponent of 2) that a number is the sum of."""
    if math.isinf(value):
        return [(1 if value > 0 else -1, _INFINITE)]
    found: list[tuple[int, int]] = []
    while value:
        fraction, exponent = math.frexp(value)
        found.append((int(math.ldexp(fraction, _BITS)), exponent - _BITS))
        value -= math.ldexp(*found[-1])
    return found
