"""exp, log, erf, tanh and what is made of them, as expressions that vectorise.

TVM emits one libm call an element for these even inside vectorised loops. The polynomials are
those of Cephes (exp, log) and Eigen (erf, tanh). What holds for float32, over the whole range:

* `exp`: relative error below 2e-7; below -87 exactly 0 (results under 1.7e-38 are flushed),
  above 88.73 inf.
* `log`: relative error below 2e-7, denormals too; -inf at 0, NaN below.
* `erf`, `tanh`: absolute error below 5e-7; `erf` is exactly +-1 from 4 on, so that `gelu` vanishes
  for large negative x.
* `sigmoid`: relative error below 4e-7. `gelu`: absolute error below 2e-6 * max(1, |x|).
* NaN gives NaN, and infinities give the limit, except where the formula itself is inf * 0:
  gelu(-inf) and silu(-inf) are NaN, as in PyTorch.

float16 is computed in float32, as TVM has no erf of it, and rounded once. float64 keeps TVM's own
intrinsic.
"""

from __future__ import annotations

import functools
import math

from ..tvm import dtype_of, te, tir
from ..tvm.types import PrimExpr
from .float32 import f32, in_f32, is_f32, of_multiple, polynomial

_EXP = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
_ERF_P = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_Q = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip
_LOG_2 = (0.693359375, -2.12194440e-4)  # the first times a whole number below 2^9 is exact
_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_TANH_P = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


def clamp(x: PrimExpr, low: PrimExpr, high: PrimExpr) -> PrimExpr:
    """`x` within limits; a NaN stays one, as TVM's Max and Min then give their second operand."""
    return tir.Max(low, tir.Min(high, x))


@in_f32
def exp(x: PrimExpr) -> PrimExpr:
    """e^x = 2^n e^r; 2^(n-1) is made of the exponent's bits, which reaches both ends of float32."""
    if not is_f32(x):
        return te.exp(x)
    x = clamp(x, f32(-87.6), f32(88.8))  # n from -126, where 2^(n-1) is the bits of 0, to 128
    n = tir.floor(x * f32(1.4426950408889634) + f32(0.5))
    r = functools.reduce(lambda rest, part: rest - n * f32(part), _LOG_2, x)
    power = (tir.Cast("int32", n) + tir.const(126, "int32")) << tir.const(23, "int32")
    return (
        (polynomial(r, _EXP) * (r * r) + r + f32(1.0))
        * tir.reinterpret("float32", power)
        * f32(2.0)
    )


# e^r for |r| <= log(2) / 2, of the least largest relative error where the first one is 1.
_EXP_DIFFERENCE = (
    8.2903057337e-3, 4.1897974908e-2, 1.6667637229e-1, 4.9999150634e-1, 9.9999970198e-1, 1.0,
)  # fmt: skip
# Added to n, it leaves n rounded to a whole number and, in the lowest bits, the exponent of 2^n.
_ROUND = 1.5 * 2.0**23 + 127.0


@in_f32
def exp_of_difference(x: PrimExpr) -> PrimExpr:
    """e^x for the x <= 0 of a softmax, in half of the steps that `exp` takes: twelve instructions.

    The relative error is below 2e-7 + 1e-7 |x|: what is small may be less exact, as it is added to
    the 1 of the largest. Below -87.7 exactly 0; NaN gives NaN.
    """
    if not is_f32(x):
        return te.exp(x)
    return _short_exp(tir.Max(f32(-88.0), x), (0.6931471805599453,))


def _short_exp(x: PrimExpr, log_2: tuple[float, ...]) -> PrimExpr:
    """e^x for x from -88, where n = -127 and 2^n the bits of 0; inf from 88.38 on, where n = 128.
    The parts of log(2) that n is multiplied by make it exact.
    """
    # As bits, or TVM takes the two constants for nothing. Each product has one reader: it and the
    # sum become one instruction.
    rounded = tir.reinterpret("int32", x * f32(1.4426950408889634) + f32(_ROUND))
    n = tir.reinterpret("float32", rounded) - f32(_ROUND)
    r = functools.reduce(lambda rest, part: rest - n * f32(part), log_2, x)
    power = rounded << tir.const(23, "int32")
    return polynomial(r, _EXP_DIFFERENCE) * tir.reinterpret("float32", power)


@in_f32
def erf(x: PrimExpr) -> PrimExpr:
    """The error function."""
    return _erf(x) if is_f32(x) else te.erf(x)


def _erf(x: PrimExpr, inside: float = 1.0, times: float = 1.0) -> PrimExpr:
    """times * erf(inside * x), of an x as large as that. A polynomial of 14 terms would do without
    the division, and is slower where divisions overlap with products (Zen 4).
    """
    p = of_multiple([c * inside * times for c in _ERF_P], inside**2)
    q = of_multiple(_ERF_Q, inside**2)
    inner = x * (polynomial(x * x, p) / polynomial(x * x, q))  # x P would cut bits off a denormal
    # The order of the operands and both branches keep a NaN, whichever way the compare goes.
    is_inner = x * x < f32(16.0 / inside**2)
    return tir.Select(is_inner, inner, clamp(x, f32(-times), f32(times)))


def _log_parts(x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """x > 0 as 2^e m with m in [1/sqrt 2, sqrt 2) -> e, and log(m) by a polynomial in m - 1."""
    # Denormals have their exponent in another place: scaled by 2^25 they are ordinary numbers.
    small = x < f32(1.1754943508e-38)
    bits = tir.reinterpret("int32", tir.Select(small, x * f32(33554432.0), x))
    # Counted from 1/sqrt 2, whose bits are 0x3f3504f3, so that m is around 1.
    n = (bits - tir.const(0x3F3504F3, "int32")) >> tir.const(23, "int32")
    m = tir.reinterpret("float32", bits - (n << tir.const(23, "int32"))) - f32(1.0)
    e = tir.Cast("float32", n) - tir.Select(small, f32(25.0), f32(0.0))
    return e, m * (m * m) * polynomial(m, _LOG) - f32(0.5) * (m * m) + m


@in_f32
def log(x: PrimExpr) -> PrimExpr:
    """The natural logarithm: 0 gives -inf, inf gives inf, and what is below 0 or NaN gives NaN."""
    if not is_f32(x):
        return te.log(x)
    e, rest = _log_parts(x)
    # LLVM takes `x - x` for 0 and a NaN for anything in compares (0.17): this much of it stays,
    # and nothing where the logarithm is 0.
    trace = clamp(x - f32(1.0), f32(-1.0), f32(1.0)) * f32(2.0**-100)
    ordinary = e * f32(-2.12194440e-4) + rest + e * f32(0.693359375) + trace
    finite = tir.Select(x < f32(math.inf), ordinary, x)
    below = tir.Select(x < f32(0.0), f32(math.nan), x + f32(-math.inf))
    return tir.Select(x > f32(0.0), finite, below)


def by_roots(exponent: float) -> bool:
    """Whether `inverse_power` is a few roots and products: whole quarters, up to 2."""
    return exponent * 4 == int(exponent * 4) and 0 <= exponent <= 2


@in_f32
def inverse_power(x: PrimExpr, exponent: float) -> PrimExpr:
    """x ** -exponent of finite x > 0: by roots where quarters of the exponent are whole numbers."""
    one = tir.const(1.0, dtype_of(x))
    if by_roots(exponent):
        root, fourth = te.sqrt(x), te.sqrt(te.sqrt(x))
        whole, rest = divmod(int(exponent * 4), 4)
        factors = [x] * whole + [root] * (rest // 2) + [fourth] * (rest % 2)
        return one / functools.reduce(lambda a, b: a * b, factors) if factors else one
    if not is_f32(x):
        return te.power(x, tir.const(-exponent, dtype_of(x)))
    # (2^e m) ** -p = 2^n e^r. The first bits of p times e are exact: else the error grows with e.
    e, log_m = _log_parts(x)
    first = round(exponent * 256) / 256
    n = tir.floor(f32(0.5) - e * f32(first))
    r = (e * f32(-first) - n) * f32(math.log(2)) - e * f32((exponent - first) * math.log(2))
    power = tir.Cast("int32", clamp(n, f32(-127.0), f32(127.0))) + tir.const(127, "int32")
    scale = tir.reinterpret("float32", power << tir.const(23, "int32"))
    return exp(r - log_m * f32(exponent)) * scale


@in_f32
def sigmoid(x: PrimExpr) -> PrimExpr:
    """1 / (1 + e^-x); 0 where that is below 4e-39."""
    one, minus = tir.const(1.0, dtype_of(x)), tir.const(0.0, dtype_of(x)) - x
    if not is_f32(x):
        return one / (one + exp(minus))
    return one / (one + _short_exp(clamp(minus, f32(-88.0), f32(88.8)), _LOG_2))


def silu(x: PrimExpr) -> PrimExpr:
    """x sigmoid(x)."""
    return x * sigmoid(x)


@in_f32
def tanh(x: PrimExpr) -> PrimExpr:
    """The hyperbolic tangent; beyond 9 it is 1 to float32's precision."""
    if not is_f32(x):
        return te.tanh(x)
    x = clamp(x, f32(-9.0), f32(9.0))
    return x * (polynomial(x * x, _TANH_P) / polynomial(x * x, _TANH_Q))  # as in erf


@in_f32
def gelu(x: PrimExpr) -> PrimExpr:
    """x (1 + erf(x / sqrt 2)) / 2."""
    half, root = tir.const(0.5, dtype_of(x)), math.sqrt(0.5)
    if is_f32(x):
        return x * (half + _erf(x, root, 0.5))
    return x * (half + half * erf(x * tir.const(root, dtype_of(x))))


@in_f32
def gelu_tanh(x: PrimExpr) -> PrimExpr:
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2."""

    def number(value: float) -> PrimExpr:
        return tir.const(value, dtype_of(x))

    inner = x * (number(1.0) + number(0.044715) * x * x) * number(math.sqrt(2 / math.pi))
    return x * number(0.5) * (number(1.0) + tanh(inner))


def hard_swish(x: PrimExpr) -> PrimExpr:
    """x * min(max(x + 3, 0), 6) / 6: near -3, where it ends, the sum is exact."""

    def number(value: float) -> PrimExpr:
        return tir.const(value, dtype_of(x))

    return x * clamp(x + number(3), number(0), number(6)) * number(1 / 6)


def power(x: PrimExpr, exponent: PrimExpr) -> PrimExpr:
    """x ** exponent; squares and cubes, as models write them, without a call of the C library."""
    times = getattr(exponent, "value", None)
    if times not in SHORT_POWERS:
        return te.power(x, exponent)
    return x * x if times == 2 else x * x * x


SHORT_POWERS = (2, 3)
