"""What tells one value of a model from all others, in whatever layout it lies: sums that neither a
transpose nor a padding with zeros changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

# Of the sums of one value as two runtimes compute it. Where there are levels of 8 bits, they may
# differ by a step, the more of them the deeper a network is.
TOLERANCE, OF_LEVELS = 3e-3, 3e-2
PADDED = 16  # a layout in blocks holds at most so many times the elements


class Sums(NamedTuple):
    """Of a value's elements: how many there are, sums of their sizes, squares and cubes, and the
    largest size.
    """

    elements: int
    levels: bool
    absolute: float
    squares: float
    cubes: float
    largest: float


def sums_of(array: np.ndarray) -> Sums:
    """In float64."""
    flat = np.ravel(np.asarray(array, np.float64))
    sizes = np.abs(flat)
    largest = float(sizes.max(initial=0.0))
    is_levels = bool(array.dtype in (np.int8, np.uint8))
    sums = float(sizes.sum()), float(flat @ flat), float(flat**2 @ flat)
    return Sums(flat.size, is_levels, *sums, largest)


def apart(one: Sums, other: Sums) -> float:
    """How far a step's value is from a model's, as a share; infinite for what cannot be it."""
    if not other.elements <= one.elements <= PADDED * other.elements or one.levels != other.levels:
        return math.inf
    # One element says little: of levels a step more of the largest is no other value.
    scales = [one.absolute, one.squares, one.squares * one.largest, 4 * one.largest]
    gaps = [
        abs(a - b) / scale if scale else 0.0 if a == b else math.inf
        for a, b, scale in zip(one[2:], other[2:], scales, strict=True)
    ]
    return max(gaps) if all(map(math.isfinite, gaps)) else math.inf


def alike(found: Sums, known: Mapping[str, Sums], tolerance: float = TOLERANCE) -> list[str]:
    """The names of the nearest value, and of those that hold the same elements in another shape."""
    gaps = {name: apart(found, sums) for name, sums in known.items()}
    least = min(gaps.values(), default=math.inf)
    if least > tolerance:
        return []
    nearest = known[next(name for name, gap in gaps.items() if gap == least)]
    return [name for name, sums in known.items() if apart(sums, nearest) < 1e-9]
