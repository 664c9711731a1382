"""Taps of a convolution's window that never meet the image: only zeros of the padding are
multiplied by them. Where none does the result is zero.

A window of 3x3 over one pixel is a product with its middle tap, and so is one whose dilation is
larger than the image. The others of its weights, eight of nine, are read for nothing; in the last
layers of a network there are millions of them.
"""

from __future__ import annotations

import numpy as np

from ..ir.rewriting import Editor, Made, dtype
from ..tvm.types import Expr
from .windows import Side, Window, convolution


def trimmed(side: Side) -> tuple[range, Side] | None:
    """The taps from the first to the last that meet the image, and the axis with these alone; None
    where that is all of them, or would take padding away from the image.
    """
    taps = [tap for tap in range(side.kernel) if side.meets(tap)]
    if not taps or len(taps) == side.kernel:
        return None
    kept = range(taps[0], taps[-1] + 1)
    before = side.before - kept.start * side.dilation
    reach = (len(kept) - 1) * side.dilation + 1
    after = max(0, (side.outputs - 1) * side.stride + reach - side.extent - before)
    found = Side(side.extent, len(kept), side.stride, side.dilation, before, after)
    is_same = before >= 0 and found.outputs == side.outputs
    return (kept, found) if is_same and len(kept) < side.kernel else None


def kept_of(window: Window) -> tuple[tuple[range, range], tuple[int, int, int, int]] | None:
    """The rows and columns of taps to keep, and the padding then; None where all are."""
    sides = window.sides
    found = [trimmed(side) for side in sides]
    if not any(found):
        return None
    (rows, tall), (cols, wide) = (
        new or (range(side.kernel), side) for side, new in zip(sides, found, strict=True)
    )
    return (rows, cols), (tall.before, wide.before, tall.after, wide.after)


def without_idle_taps(made: Made, to: Editor) -> Expr | None:
    """A conv2d of a constant weight without them, and without the padding that they met."""
    read = convolution(made, to)
    if read is None:
        return None
    if read.window.is_padding:
        return _zeros(made, to, str(made.attrs["out_dtype"] or dtype(to, made.args[0])))
    found = kept_of(read.window)
    return None if found is None else read.with_taps(to, made.args[0], *found)


def _zeros(made: Made, to: Editor, dtype: str) -> Expr | None:
    """What such a convolution computes, where its size is known."""
    shape = to.shape(made.call)
    if shape is None or not all(isinstance(extent, int) for extent in shape):
        return None
    return to.constant(np.zeros(shape, dtype))
