"""Fixed-point arithmetic of quantised models and its limits, for computes and NumPy alike."""

from __future__ import annotations

import math

MOST_OF_TWO = ((1 << 31) - 1) // 255**2  # products of levels of two activations that int32 sums
MOST_SHIFTED = 62  # bits of a product of two int32: what is shifted by more is 0


def fixed_point(scale: float) -> tuple[int, int]:
    """A positive scale as (multiplier, right shift): scale = multiplier * 2^-shift with 31 bits, as
    in Relay's qnn.

    >>> fixed_point(0.5)
    (1073741824, 31)
    """
    mantissa, exponent = math.frexp(scale)
    multiplier = round_half_away(mantissa * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, exponent = multiplier // 2, exponent + 1
    return multiplier, 31 - exponent


def round_half_away(value: float) -> int:
    """C's `round`, which the multiplier is defined with."""
    return math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)


def within_64_bits(multiplier: int, shift: int) -> tuple[int, int]:
    """The same where a product of 62 bits is shifted within 64: by more it is 0.

    >>> within_64_bits(1 << 30, 90)
    (0, 62)
    """
    return (multiplier, shift) if shift <= MOST_SHIFTED else (0, MOST_SHIFTED)
