"""Two kernels in turns: what pairs of windows, one right after the other, say of their times.

What disturbs a machine for longer than a window disturbs both of a pair, so that it leaves their
ratio alone; what is shorter makes some ratios too high and as many too low.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CHANCE = 0.01  # that the true ratio is outside the interval


@dataclass(frozen=True)
class Ratio:
    """Time by time: the median of the pairs, and the interval that holds the true one."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3g} times, between {self.low:.3g} and {self.high:.3g}"


def ratio(times: Sequence[float], of: Sequence[float]) -> Ratio:
    """Of pairs of times; the interval is that of a sign test, which takes no shape for granted."""
    found = sorted(a / b for a, b in zip(times, of, strict=True))
    outside = _outside(len(found))
    low, high = (found[outside - 1], found[-outside]) if outside else (0.0, math.inf)
    return Ratio(statistics.median(found), low, high)


def _outside(count: int) -> int:
    """How many of so many pairs, at either end, the interval may leave out; 0: there is none."""
    tail, outside = 0.0, 0
    while True:
        tail += math.comb(count, outside) / 2**count
        if 2 * tail > CHANCE:
            return outside
        outside += 1
