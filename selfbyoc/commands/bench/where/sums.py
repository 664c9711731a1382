"""What tells one value of a model from all others, in whatever layout it lies: sums that neither a
transpose nor a padding with zeros changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

# Of the sums of one value as two runtimes compute it; levels of 8 bits may differ by a step.
TOLERANCE = 3e-3


class Sums(NamedTuple):
    """Of a value's elements: of their sizes, squares and cubes, and the largest size."""

    absolute: float
    squares: float
    cubes: float
    largest: float


def sums_of(array: np.ndarray) -> Sums:
    """In float64."""
    flat = np.ravel(np.asarray(array, np.float64))
    sizes = np.abs(flat)
    largest = float(sizes.max(initial=0.0))
    return Sums(float(sizes.sum()), float(flat @ flat), float(flat**2 @ flat), largest)


def apart(one: Sums, other: Sums) -> float:
    """How far two are apart, as a share; infinite for what is not finite."""
    scales = [one.absolute, one.squares, one.squares * one.largest, one.largest]
    gaps = [
        abs(a - b) / scale if scale else 0.0 if a == b else math.inf
        for a, b, scale in zip(one, other, scales, strict=True)
    ]
    return max(gaps) if all(map(math.isfinite, gaps)) else math.inf


def alike(found: Sums, known: Mapping[str, Sums]) -> list[str]:
    """The names of the nearest value, and of those that hold the same elements in another shape."""
    gaps = {name: apart(found, sums) for name, sums in known.items()}
    least = min(gaps.values(), default=math.inf)
    if least > TOLERANCE:
        return []
    nearest = known[next(name for name, gap in gaps.items() if gap == least)]
    return [name for name, sums in known.items() if apart(nearest, sums) < 1e-9]
