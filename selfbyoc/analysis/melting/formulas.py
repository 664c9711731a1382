"""Bytes and operations of a kernel as formulas of its symbolic sizes.

They are polynomials: what the ops of a graph read, write and compute are products of extents. So a
few sizes say which one it is, and others confirm it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

Sizes = Mapping[str, int]
Powers = tuple[int, ...]

POINTS = (11, 13, 17)  # of each symbol: no power is above 2, as in the scores of attention
OTHERS = (1, 29, 128)  # where a formula has to hold too
MOST_SYMBOLS = 3


@dataclass(frozen=True)
class Formula:
    """The sum of `factor` times powers of the symbols, the highest first."""

    symbols: tuple[str, ...]
    terms: tuple[tuple[int, Powers], ...]

    def at(self, sizes: Sizes) -> int:
        """Its value."""
        bases = [sizes[name] for name in self.symbols]
        return sum(f * math.prod(map(pow, bases, powers)) for f, powers in self.terms)

    def __str__(self) -> str:
        return " + ".join(self._term(*term) for term in self.terms) or "0"

    def _term(self, factor: int, powers: Powers) -> str:
        pairs = zip(self.symbols, powers, strict=True)
        names = [name if power == 1 else f"{name}^{power}" for name, power in pairs if power]
        return " ".join([*([] if factor == 1 and names else [str(factor)]), *names])


def formula(value: Callable[[Sizes], int], symbols: Sequence[str]) -> Formula | None:
    """What a number is for every size; None where it is no such sum, or of too many symbols."""
    if not 0 < len(symbols) <= MOST_SYMBOLS:
        return None
    found = _fitted(value, list(symbols), {})
    if any(factor.denominator != 1 for factor in found.values()):
        return None
    order = sorted(found, key=lambda powers: (-sum(powers), tuple(-p for p in powers)))
    terms = tuple((int(found[powers]), powers) for powers in order if found[powers])
    made = Formula(tuple(symbols), terms)
    shifted = [
        {name: OTHERS[(first + n) % len(OTHERS)] for n, name in enumerate(symbols)}
        for first in range(len(OTHERS))
    ]
    return made if all(made.at(sizes) == value(sizes) for sizes in shifted) else None


def _fitted(
    value: Callable[[Sizes], int], symbols: Sequence[str], fixed: Sizes
) -> dict[Powers, Fraction]:
    """Powers of the symbols -> their factor, where the `fixed` ones have these sizes."""
    if not symbols:
        return {(): Fraction(value(fixed))}
    first, *rest = symbols
    parts = [_fitted(value, rest, {**fixed, first: point}) for point in POINTS]
    return {
        (power, *powers): factor
        for powers in parts[0]
        for power, factor in enumerate(_quadratic([part[powers] for part in parts]))
    }


def _quadratic(values: Sequence[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
    """a, b and c of a + b x + c x^2, by Newton's divided differences."""
    (x, y, z), (u, v, w) = POINTS, values
    slope, next_slope = (v - u) / (y - x), (w - v) / (z - y)
    c = (next_slope - slope) / (z - x)
    return u - slope * x + c * x * y, slope - c * (x + y), c
