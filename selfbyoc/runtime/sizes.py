"""Symbolic sizes of a library's inputs: axes that have one size, and the largest that it may be;
and sizes that are expressions of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import InputError
from ..ir.symbols import Range
from ..models.dim_names import value_of
from ..tvm import GENERATION
from ..tvm.types import IRModule
from .signature import Tensor

# The largest size (None: any), and where it is: input and axis.
Size = tuple[int | None, tuple[tuple[int, int], ...]]


def sizes_of(mod: IRModule) -> dict[str, Size]:
    """The symbols of a module's `main`, by name."""
    if GENERATION == "relay":
        from ..ir.relay.any import names_of

        names = names_of(mod["main"])
        symbols = dict.fromkeys(names.values())
        return {name: (None, tuple(at for at in names if names[at] == name)) for name in symbols}
    from ..ir.relax.symbols import casts, places, ranges

    within = ranges(mod["main"])
    found = {**places(mod["main"]), **casts(mod["main"])}
    return {name: (within.get(name, Range()).most, at) for name, at in found.items()}


def least_sizes(mod: IRModule) -> dict[str, int]:
    """The least sizes of a module's symbols, where that is more than 0."""
    if GENERATION == "relay":
        return {}
    from ..ir.relax.symbols import places, ranges

    known = places(mod["main"])
    found = ranges(mod["main"]).items()
    return {name: each.least for name, each in found if each.least and name in known}


def bounded_by(mod: IRModule) -> dict[str, str]:
    """Who says what the largest sizes of a module's symbols are, as far as that is known."""
    if GENERATION == "relay":
        return {}
    from ..ir.relax.symbols import bounded_by, places

    known = places(mod["main"])
    return {name: by for name, by in bounded_by(mod["main"]).items() if name in known}


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
