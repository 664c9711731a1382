"""Taps of a convolution's window that never meet the image: only zeros of the padding are
multiplied by them. Where none does the result is zero.

A window of 3x3 over one pixel is a product with its middle tap, and so is one whose dilation is
larger than the image. The others of its weights, eight of nine, are read for nothing; in the last
layers of a network there are millions of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..ir.rewriting import Editor, Made, dtype
from ..ops.half_weights import WIDENS
from ..tvm.types import Expr


@dataclass(frozen=True)
class Side:
    """One axis of a convolution: its extents, and how far the image is padded at both ends."""

    extent: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def outputs(self) -> int:
        """How many places the window has."""
        reach = (self.kernel - 1) * self.dilation + 1
        return (self.extent + self.before + self.after - reach) // self.stride + 1

    def meets(self, tap: int) -> bool:
        """Whether a tap lies on the image at some place of the window."""
        first = tap * self.dilation - self.before
        return any(0 <= first + y * self.stride < self.extent for y in range(self.outputs))


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


@dataclass(frozen=True)
class Window:
    """The attributes of a convolution of two axes."""

    image: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]  # top, left, bottom, right

    @property
    def sides(self) -> list[Side]:
        """Both axes."""
        columns = zip(
            self.image, self.kernel, self.strides, self.dilation,
            self.padding[:2], self.padding[2:], strict=True,
        )  # fmt: skip
        return [Side(*each) for each in columns]

    @property
    def is_padding(self) -> bool:
        """Whether no tap ever meets the image."""
        return any(not any(map(side.meets, range(side.kernel))) for side in self.sides)


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
    if made.kind != "conv2d":
        return None
    wide = to.made(made.args[1])
    if wide is not None and wide.kind not in WIDENS:
        return None
    weight = to.array(made.args[1] if wide is None else wide.args[0])
    image, attrs = to.shape(made.args[0]), made.attrs
    if weight is None or image is None or not attrs:
        return None
    layouts = attrs["data_layout"], attrs["kernel_layout"]
    if any(len(layout) != 4 for layout in layouts):
        return None
    at = _places(layouts[1])
    height, width = (image[axis] for axis in _places(layouts[0]))
    if not isinstance(height, int) or not isinstance(width, int):
        return None
    window = Window(
        (height, width), (weight.shape[at[0]], weight.shape[at[1]]),
        attrs["strides"], attrs["dilation"], attrs["padding"],
    )  # fmt: skip
    if window.is_padding:
        return _zeros(made, to, str(attrs["out_dtype"] or dtype(to, made.args[0])))
    found = kept_of(window)
    if found is None:
        return None
    for axis, taps in zip(at, found[0], strict=True):
        weight = np.take(weight, taps, axis)
    trimmed = to.constant(np.ascontiguousarray(weight))
    if wide is not None:
        trimmed = to.again(wide, [trimmed])
    return to.emit("conv2d", made.args[0], trimmed, **{**attrs, "padding": found[1]})


def _zeros(made: Made, to: Editor, dtype: str) -> Expr | None:
    """What such a convolution computes, where its size is known."""
    shape = to.shape(made.call)
    if shape is None or not all(isinstance(extent, int) for extent in shape):
        return None
    return to.constant(np.zeros(shape, dtype))


def _places(layout: str) -> tuple[int, int]:
    """Where rows and columns stand."""
    return layout.index("H"), layout.index("W")
