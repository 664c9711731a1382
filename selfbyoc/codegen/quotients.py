"""Quotients by a constant, right to the last bit without a division.

A vector's division takes as long as thirty multiplications. By Markstein's theorem two fused
multiply-adds mend a product with the correctly rounded reciprocal: q = x * y, q + (x - q * c) * y.
That is x / c rounded once, unless the reciprocal overflows or c is the largest of its power of two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._tvm import dtype_of, tir
from .._tvm_own_ops import QUOTIENT, has_own, is_own, lanes_of, llvm, own_op
from .._tvm_rewrite import map_calls
from ..cpu_features import architecture, features_of

LEAST, MOST = 2.0**-40, 2.0**40  # of the divisor: no step of it leaves the normal floats


def _mended(x: Any, divisor: Any, reciprocal: Any) -> Any:
    """The quotient by three products, in vectors."""
    dtype = str(dtype_of(x))
    first = x * reciprocal
    rest = llvm("llvm.fma", dtype, _negative(first), divisor, x)
    return llvm("llvm.fma", dtype, rest, reciprocal, first)


def _negative(x: Any) -> Any:
    minus, lanes = tir.const(-1.0, "float32"), lanes_of(x)
    return x * (tir.Broadcast(minus, lanes) if lanes > 1 else minus)


_by_reciprocal = own_op(f"{QUOTIENT}.reciprocal", _mended, "float32")


def with_quotients(func: Any, target: Any) -> Any:
    """A scheduled function whose quotients by constants are products, where the CPU fuses them."""
    fuses = architecture(target) != "x86_64" or "fma" in features_of(target)
    if not fuses or not has_own(func, QUOTIENT):
        return func

    def change(call: Any) -> Any:
        if not is_own(call, QUOTIENT):
            return call
        x, divisor = call.args
        if not isinstance(divisor, tir.FloatImm) or not _is_usual(float(divisor.value)):
            return call
        reciprocal = float(np.float32(1) / np.float32(divisor.value))
        return _by_reciprocal(x, divisor, tir.const(reciprocal, "float32"))

    return map_calls(func, change)


def _is_usual(number: float) -> bool:
    mantissa, _ = math.frexp(abs(number))
    return LEAST < abs(number) < MOST and mantissa < 1 - 2.0**-24
