"""The window of a convolution of a constant weight: read of an op, and written with fewer taps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.rewriting import Editor, Made
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

    def reads(self, tap: int, place: int) -> int:
        """Where a tap lies at a place of the window: below 0, or from the extent on, on padding."""
        return place * self.stride - self.before + tap * self.dilation

    def meets(self, tap: int) -> bool:
        """Whether a tap lies on the image at some place of the window."""
        return any(0 <= self.reads(tap, y) < self.extent for y in range(self.outputs))


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


@dataclass(frozen=True)
class Convolution:
    """A conv2d whose weight is constant, perhaps of halves that are widened first."""

    made: Made
    weight: np.ndarray
    wide: Made | None
    window: Window

    @property
    def axes(self) -> tuple[int, int]:
        """Where rows and columns stand in the image, and in the result."""
        return _places(str(self.made.attrs["data_layout"]))

    def with_taps(
        self, to: Editor, image: Expr, taps: Sequence[range], padding: tuple[int, int, int, int]
    ) -> Expr:
        """The same of another image, with some rows and columns of its taps."""
        weight = self.weight
        for axis, kept in zip(_places(str(self.made.attrs["kernel_layout"])), taps, strict=True):
            weight = np.take(weight, kept, axis)
        constant = to.constant(np.ascontiguousarray(weight))
        if self.wide is not None:
            constant = to.again(self.wide, [constant])
        return to.emit("conv2d", image, constant, **{**self.made.attrs, "padding": padding})


def convolution(made: Made, to: Editor) -> Convolution | None:
    """What an op is, if it is a convolution of a constant weight and an image of a known size."""
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
    height, width = (image[axis] for axis in _places(layouts[0]))
    if not isinstance(height, int) or not isinstance(width, int):
        return None
    rows, columns = (weight.shape[axis] for axis in _places(layouts[1]))
    window = Window(
        (height, width), (rows, columns), attrs["strides"], attrs["dilation"], attrs["padding"]
    )
    return Convolution(made, weight, wide, window)


def _places(layout: str) -> tuple[int, int]:
    """Where rows and columns stand."""
    return layout.index("H"), layout.index("W")
