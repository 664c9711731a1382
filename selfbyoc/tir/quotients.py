"""Quotients by one number, right to the last bit, by products where a division takes longer.

There a vector's division takes the time of twenty to thirty products. After Markstein two fused
multiply-adds mend a product with the rounded reciprocal: q = x * y, q + (x - q * c) * y. Both
operands are moved by a power of two first, so that the divisor lies between 1 and 4 and no step of
it leaves the normal floats. All that comes of the divisor alone LLVM takes out of the loops.

CPUs that divide eight floats in five cycles do so beside the products, and what waits for a level
waits less: 1x1, 16x112x112 to 96 of levels, one core of Zen 3 (Nov 2026), 0.61 ms, of products 0.69
to 0.76; a MobileNetV2 1.06 and a SqueezeNet 1.08 times as fast. By llvm-mca cycles of a vector
there, divided and by products: znver3 10.5 and 11.8, alderlake 6.7 and 8.2, neoverse-v2 3.9, 4.9;
haswell 16.4 and 14.8, skylake-avx512 10.0 and 6.4, neoverse-n1 12.6 and 10.3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..machine import machine
from ..machine.features import architecture, features_of
from ..tvm import dtype_of, tir
from ..tvm.own_ops import QUOTIENT, as_bits, has_own, is_own, lanes_of, llvm, own_op
from ..tvm.rewrite import map_calls
from ..tvm.types import PrimExpr, PrimFunc, Target

EXPONENT, ONE, BIAS = 0x7F800000, 1 << 23, 127 << 23  # of the bits of a float32
FAST = 7  # cycles of a vector
LARGEST = float(np.finfo(np.float32).max)


def _mended(x: PrimExpr, divisor: PrimExpr) -> PrimExpr:
    """The quotient by four products, in vectors; of divisors that differ by element as it is."""
    one = divisor.value if isinstance(divisor, tir.Broadcast) else divisor
    lanes = lanes_of(x)
    if lanes_of(one) > 1:
        return tir.div(x, divisor)
    dtype = str(dtype_of(x))

    def products(
        power: PrimExpr, near: PrimExpr, reciprocal: PrimExpr, moved: PrimExpr, first: PrimExpr
    ) -> PrimExpr:
        minus = _all(lanes, near * tir.const(-1.0, "float32"))
        rest = llvm("llvm.fma", dtype, first, minus, moved)
        return llvm("llvm.fma", dtype, rest, _all(lanes, reciprocal), first)

    return _bound(
        products,
        ("power", "float32", lambda: _power(one)),
        ("near", "float32", lambda power: _limited(one * power)),
        ("reciprocal", "float32", lambda power, near: tir.const(1.0, "float32") / near),
        ("moved", dtype, lambda power, *_: x * _all(lanes, power)),
        ("first", dtype, lambda _, __, reciprocal, moved: moved * _all(lanes, reciprocal)),
    )


def _bound(
    result: Callable[..., PrimExpr], *steps: tuple[str, str, Callable[..., PrimExpr]]
) -> PrimExpr:
    """An expression of values that are computed once each, of those before them."""
    names = [tir.Var(name, dtype) for name, dtype, _ in steps]
    values = [make(*names[:n]) for n, (_, _, make) in enumerate(steps)]
    found = result(*names)
    for var, value in reversed(list(zip(names, values, strict=True))):
        found = tir.Let(var, value, found)
    return found


def _power(number: PrimExpr) -> PrimExpr:
    """The power of two that brings a number between 1 and 4; the smallest numbers near it."""
    exponent = as_bits("int32", number) & tir.const(EXPONENT, "int32")
    return as_bits("float32", tir.Max(tir.const(2 * BIAS, "int32") - exponent, ONE))


def _limited(number: PrimExpr) -> PrimExpr:
    """Infinities as the largest floats, whose quotients are no levels either; NaN stays NaN."""
    most = tir.const(LARGEST, "float32")
    return tir.Max(most * tir.const(-1.0, "float32"), tir.Min(most, number))


def _all(lanes: int, number: PrimExpr) -> PrimExpr:
    return tir.Broadcast(number, lanes) if lanes > 1 else number


_by_reciprocal = own_op(f"{QUOTIENT}.reciprocal", _mended, "float32")


def with_quotients(func: PrimFunc, target: Target) -> PrimFunc:
    """A scheduled function whose quotients are products, where the CPU fuses them and is slow to
    divide.
    """
    if machine(target).division <= FAST:
        return func
    fuses = architecture(target) != "x86_64" or "fma" in features_of(target)
    if not fuses or not has_own(func, QUOTIENT):
        return func
    return map_calls(func, lambda c: _by_reciprocal(*c.args) if is_own(c, QUOTIENT) else c)
