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
        low, high = bounds[name]
        if int(array.min()) < low or int(array.max()) > high:
            where = tuple(int(n) for n in np.argwhere((array < low) | (array > high))[0])
            wanted = f"indices from {low} to {high}" if low < high else f"{low} everywhere"
            raise InputError(
                f"input {name!r}: expected {wanted}, found {array[where]} at {list(where)}"
            )
