"""Between which numbers the integers of a tensor are, as ops say it; True is 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

Interval = tuple[int, int]  # the least and the largest element that there may be

MOST = (1 << 31) - 1  # that an open size may be
TRUE, FALSE, EITHER = (1, 1), (0, 0), (0, 1)


def of_array(array: np.ndarray) -> Interval | None:
    """Of a constant; None where its elements are no integers, or none."""
    if array.dtype.kind not in "biu" or not array.size:
        return None
    return int(array.min()), int(array.max())


def union(parts: Sequence[Interval | None]) -> Interval | None:
    """Of elements of any of these."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return min(least for least, _ in known), max(most for _, most in known)


def within(found: Interval | None, dtype: str) -> Interval | None:
    """An interval whose numbers a dtype has: of others integers begin again at their least."""
    if found is None or dtype == "bool":
        return found
    limits = np.iinfo(dtype)
    return found if limits.min <= found[0] and found[1] <= limits.max else None


def as_bool(a: Interval | None) -> Interval:
    """Whether elements are not 0."""
    if a is None or a[0] <= 0 <= a[1]:
        return FALSE if a == FALSE else EITHER
    return TRUE


def _less(a: Interval, b: Interval) -> Interval:
    return TRUE if a[1] < b[0] else FALSE if a[0] >= b[1] else EITHER


def _equal(a: Interval, b: Interval) -> Interval:
    if a[0] == a[1] == b[0] == b[1]:
        return TRUE
    return FALSE if a[1] < b[0] or b[1] < a[0] else EITHER


def _not(a: Interval) -> Interval:
    return 1 - a[1], 1 - a[0]


def _products(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _least(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), min(a[1], b[1])


def _largest(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), max(a[1], b[1])


OF_TWO: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "multiply": _products, "minimum": _least, "maximum": _largest,
    "logical_and": _least, "logical_or": _largest, "equal": _equal, "less": _less,
    "not_equal": lambda a, b: _not(_equal(a, b)), "greater": lambda a, b: _less(b, a),
    "greater_equal": lambda a, b: _not(_less(a, b)), "less_equal": lambda a, b: _not(_less(b, a)),
}  # fmt: skip
