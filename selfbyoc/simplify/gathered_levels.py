"""Tables of levels, as of embeddings: rows of their bytes are gathered, and floats made of those.

    take(dequantize(table), at)  ->  dequantize(take(table, at))

The float table would be four times the bytes, in memory and in a file. A scale for each row is
gathered beside it, and so is a zero point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.rewriting import Editor, Made, cast
from ..tvm.types import Expr
from .levels import is_dequantized

_MODES = ("clip", "fast", "wrap")  # Relax has "nan" besides, which no byte can be


def rows_of_levels(made: Made, to: Editor) -> Expr | None:
    """A take of dequantised constants as one of the levels, dequantised after it."""
    before = to.made(made.args[0]) if made.name == "take" else None
    if before is None or before.kind != "dequantize" or not _is_plain(made):
        return None
    known = [array for arg in before.args if (array := to.array(arg)) is not None]
    ends = to.shape(made.call), to.shape(made.args[1])
    if len(known) < len(before.args) or None in ends or not ends[0]:
        return None
    levels, *factors = known
    kept = _axis_after(made, before, levels.ndim, len(ends[1] or ()), factors)
    if kept is None:
        return _each_with_its_own(made, before, known, to)
    rows = to.again(made, [before.args[0], *made.args[1:]])
    numbers = [to.constant(each.reshape(())) if each.size == 1 else to.constant(each)
               for each in factors]  # fmt: skip
    return to.emit("dequantize", rows, *numbers, axis=kept, out_dtype=str(before.raw["out_dtype"]))


def _is_plain(made: Made) -> bool:
    """Whether a take reads one element for each of its results: Relay's may go by batches."""
    return str(made.raw["mode"]) in _MODES and not int(made.raw.get("batch_dims", 0) or 0)


def _axis(made: Made) -> int | None:
    axis = made.raw["axis"]
    return None if axis is None else int(axis)


def _axis_after(
    made: Made, before: Made, ndim: int, places: int, factors: Sequence[np.ndarray]
) -> int | None:
    """The axis of the scales and zero points in what is gathered; None: it is the one that goes."""
    if all(each.size == 1 for each in factors):
        return -1
    along, gathered = int(before.raw["axis"]) % ndim, _axis(made)
    if gathered is None or along == gathered % ndim:
        return None
    return along if along < gathered % ndim else along + places - 1


def _each_with_its_own(
    made: Made, before: Made, known: Sequence[np.ndarray], to: Editor
) -> Expr | None:
    """(levels - zero point) * scale, of rows that have one of their own each: no `dequantize` has
    them along several axes.
    """
    if _axis(made) is None or not is_dequantized(before):
        return None
    levels, scale, zero = known
    column = [1] * levels.ndim
    column[int(before.raw["axis"])] = -1

    def gathered(factor: np.ndarray) -> Expr:
        if factor.size == 1:
            return to.constant(factor.reshape(()))
        return to.again(made, [to.constant(factor.reshape(column)), *made.args[1:]])

    found = cast(to, to.again(made, [before.args[0], *made.args[1:]]), "int32")
    if zero.any():
        found = to.emit("subtract", found, cast(to, gathered(zero), "int32"))
    return to.emit("multiply", cast(to, found, "float32"), gathered(scale))
