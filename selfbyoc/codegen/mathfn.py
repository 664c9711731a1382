"""exp, erf, tanh and what is made of them, as expressions that vectorise.

TVM emits one libm call an element for these even inside vectorised loops. The polynomials are those of
Cephes (exp) and Eigen (erf); for float32 the relative error of `exp` is below 2e-7 from -87 to 88, and the
absolute error of `erf` and `tanh` below 4e-7. Other dtypes keep TVM's own intrinsic.
"""

from __future__ import annotations

from typing import Any

from .._tvm import dtype_of, te, tir

_EXP = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_ERF_P = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_Q = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip


def _f(value: float) -> Any:
    return tir.const(value, "float32")


def _poly(x: Any, coefficients: tuple[float, ...]) -> Any:
    total = _f(coefficients[0])
    for c in coefficients[1:]:
        total = total * x + _f(c)
    return total


def _clamp(x: Any, low: float, high: float) -> Any:
    return tir.Max(tir.Min(x, _f(high)), _f(low))


def _is_f32(x: Any) -> bool:
    return dtype_of(x) == "float32"


def exp(x: Any) -> Any:
    """e^x; 2^n is put together from the exponent's bits, so very small results flush to about 1e-38."""
    if not _is_f32(x):
        return te.exp(x)
    x = _clamp(x, -87.3, 88.7)
    n = tir.floor(x * _f(1.4426950408889634) + _f(0.5))
    r = x - n * _f(0.693359375) + n * _f(2.12194440e-4)
    power = (tir.Cast("int32", n) + tir.const(127, "int32")) << tir.const(23, "int32")
    return (_poly(r, _EXP) * (r * r) + r + _f(1.0)) * tir.reinterpret("float32", power)


def erf(x: Any) -> Any:
    """The error function; beyond 4 it is 1 to float32's precision."""
    if not _is_f32(x):
        return te.erf(x)
    x = _clamp(x, -4.0, 4.0)
    return x * _poly(x * x, _ERF_P) / _poly(x * x, _ERF_Q)


def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    one = tir.const(1.0, dtype_of(x))
    return one / (one + exp(tir.const(0.0, dtype_of(x)) - x))


def tanh(x: Any) -> Any:
    """2 sigmoid(2x) - 1."""
    if not _is_f32(x):
        return te.tanh(x)
    return _f(2.0) * sigmoid(_f(2.0) * x) - _f(1.0)


def gelu(x: Any) -> Any:
    """x (1 + erf(x / sqrt 2)) / 2."""
    half, one = tir.const(0.5, dtype_of(x)), tir.const(1.0, dtype_of(x))
    return x * half * (one + erf(x * tir.const(0.7071067811865476, dtype_of(x))))
