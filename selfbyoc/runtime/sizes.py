"""What a library asks of the arrays that it is given, beside their types: symbolic sizes (axes that
have one size, the largest that it may be, sizes that are expressions of others), and numbers that
are indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import InputError
from ..models.dim_names import value_of
from .signature import Tensor

IndexBounds = Mapping[str, tuple[int, int]]  # input -> the least and the largest number
# Numbers of an input that are places along an axis: the input; whether those below 0 count from the
# end; where these numbers are, an axis of the input and a place along it (None: all are); how many
# places there are, or the input and the axis that have as many elements; a number that is none and
# stands for no place (None: there is none), as of the targets that a loss leaves out.
IndexPlace = tuple[
    int, bool, tuple[int, int] | None, int | None, tuple[int, int] | None, int | None
]
# The largest size (None: any), and where it is: input and axis.
Size = tuple[int | None, tuple[tuple[int, int], ...]]


def check_sizes(
    sizes: Mapping[str, Size],
    inputs: Sequence[Tensor],
    arrays: Sequence[np.ndarray],
    least: Mapping[str, int],
) -> None:
    """Raises InputError for two axes that should be equal and are not, or one that is too long or
    too short.
    """
    known: dict[str, int] = {}
    for name, (most, places) in sizes.items():
        first, *others = [(arrays[i].shape[axis], i, axis) for i, axis in places]
        if not name.isidentifier() and (wanted := value_of(name, known)) not in (None, first[0]):
            raise InputError(f"size {name}: expected {wanted}, found {_said(inputs, *first)}")
        known[name] = first[0]
        for other in others:
            if other[0] != first[0]:
                found = " and ".join(_said(inputs, *place) for place in (first, other))
                raise InputError(f"size {name}: expected one size, found {found}")
        if most is not None and first[0] > most:
            raise InputError(f"size {name}: expected at most {most}, found {_said(inputs, *first)}")
        if first[0] < least.get(name, 0):
            text = f"expected at least {least[name]}, found {_said(inputs, *first)}"
            raise InputError(f"size {name}: {text}")


def _said(inputs: Sequence[Tensor], size: int, position: int, axis: int) -> str:
    return f"{size} in axis {axis} of input {inputs[position][0]!r}"


def check_indices(
    bounds: IndexBounds, inputs: Sequence[Tensor], arrays: Sequence[np.ndarray]
) -> None:
    """Raises InputError for a number that is no index of anything."""
    if not bounds:
        return
    for (name, _, _), array in zip(inputs, arrays, strict=True):
        if name not in bounds or not array.size:
            continue
        _check_within(name, array, bounds[name])


def check_places(
    places: Sequence[IndexPlace], inputs: Sequence[Tensor], arrays: Sequence[np.ndarray]
) -> None:
    """Raises InputError for a number that is no index of an axis, whose size a call knows."""
    for position, is_signed, column, count, of, ignored in places:
        if count is None:
            count = 0 if of is None else arrays[of[0]].shape[of[1]]
        bounds = (-count if is_signed else 0), count - 1
        _check_within(inputs[position][0], arrays[position], bounds, column, ignored)


def _check_within(
    name: str,
    array: np.ndarray,
    bounds: tuple[int, int],
    column: tuple[int, int] | None = None,
    ignored: int | None = None,
) -> None:
    part = array if column is None else array.take([column[1]], column[0])
    low, high = bounds
    if not part.size or (int(part.min()) >= low and int(part.max()) <= high):
        return
    is_beyond = (part < low) | (part > high)
    if ignored is not None:
        is_beyond &= part != ignored
    if not is_beyond.any():
        return
    where = [int(n) for n in np.argwhere(is_beyond)[0]]
    found = part[tuple(where)]
    if column is not None:
        where[column[0]] = column[1]
    wanted = f"indices from {low} to {high}" if low < high else f"{low} everywhere"
    wanted = "none, for there is nothing to index" if high < 0 else wanted
    wanted += "" if ignored is None else f" or {ignored}"
    raise InputError(f"input {name!r}: expected {wanted}, found {found} at {where}")
