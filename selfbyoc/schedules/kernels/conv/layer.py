"""What a plan is told of a convolution."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....codegen.info.ops import OpView
from ....tvm.types import Attrs, Shape
from ..words import words_of
from .pack import row_blocks


@dataclass(frozen=True)
class Layer:
    """A conv2d in NCHW and OIHW."""

    name: str
    image: Shape
    kernel: Shape
    out: Shape
    attrs: Attrs
    dtype: str  # of what is multiplied and added
    blocks: tuple[int, int]  # of packed weights, and output channels in each
    is_across: bool = False  # whether a block may hold channels of several groups

    @classmethod
    def of(
        cls, op: OpView, dtype: str = "float32", packed: Shape | None = None, word: int = 1
    ) -> Layer:
        """Of an op in a plan (`ops.conv2d`), the shape that its weight came packed in, and how many
        input channels are multiplied as one.
        """
        image, kernel, out = op.inputs[0][0], op.inputs[1][0], op.outputs[0][0]
        depth = words_of(kernel[1], word)
        image = (image[0], op.attrs["groups"] * depth, *image[2:])
        kernel = (kernel[0], depth, *kernel[2:])
        usual = row_blocks(kernel[0], op.attrs["groups"])
        blocks = usual if packed is None else (packed[0], packed[-1])
        return cls(op.name, image, kernel, out, op.attrs, dtype, blocks)

    @property
    def window(self) -> Shape:
        """Height and width of the window."""
        return self.kernel[2:]

    @property
    def strides(self) -> tuple[int, int]:
        """Down and along, where windows have several taps: pixels of other strides are none."""
        down, along = (
            int(step) if taps > 1 else 1
            for step, taps in zip(self.attrs["strides"], self.window, strict=True)
        )
        return down, along

    def unstrided(self) -> Layer:
        """The same with a window at every pixel between the first and the last one, along axes with
        several taps.
        """
        size = ((n - 1) * step + 1 for n, step in zip(self.out[2:], self.strides, strict=True))
        left = zip(self.attrs["strides"], self.strides, strict=True)
        attrs = {**self.attrs, "strides": tuple(int(all_) // own for all_, own in left)}
        return replace(self, out=(*self.out[:2], *size), attrs=attrs)

    @property
    def steps(self) -> int:
        """Products of a sum."""
        return self.kernel[1] * self.window[0] * self.window[1]

    @property
    def is_depthwise(self) -> bool:
        """Whether every output channel reads one input channel."""
        return bool(self.groups > 1 and self.kernel[1] == 1)

    @property
    def groups(self) -> int:
        """Into which the channels are parted."""
        return int(self.attrs["groups"])

    @property
    def is_plain(self) -> bool:
        """Whether a 1x1 window reads all channels and no padding."""
        one = tuple(self.window) == (1, 1) and not any(self.attrs["padding"])
        return one and self.groups == 1
