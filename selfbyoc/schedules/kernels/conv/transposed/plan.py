"""The plan of a transposed convolution: ordinary convolutions, one for phases with as many taps.

Pixel (y, x) of the result with y + before = stride * a + phase sums image[a - t] by row
phase + stride * t of the kernel: the pixels of one phase are a convolution at stride 1, by every
stride-th row and column of the kernel. Phases that have as many taps are channels of one
convolution: a kernel that the stride divides, as nearly all are, is one (4x4 at stride 2: 2x2 to
four times the channels), another one up to four (3x3 at stride 2: 2x2, 2x1, 1x2 and 1x1). Nothing
is multiplied by the zeros that a spread image would have. One core of Cascade Lake under load, Nov
2026, ours and PyTorch's eager one: 128x32x32 to 64 channels, 4x4 at stride 2, 3.6 and 4.3 ms;
64x64x64 to 3 0.7 and 2.5; 64x64x64 to 32, 3x3 at stride 2, 4.3 and 5.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .....codegen.info.ops import Ops, OpView
from .....machine import Machine
from .....ops.transposed import Upsampling
from ....steps.faults import Faults, outside, uncovered, unlike
from ..layer import Layer
from ..pack import row_blocks
from ..pixels.plan import PixelPlan
from ..plan import fastest, forms_of_pixels
from ..pointwise.plan import PointwisePlan


@dataclass(frozen=True)
class Side:
    """Phases of one axis with as many taps."""

    first: int
    count: int
    taps: int


@dataclass(frozen=True)
class Part:
    """An ordinary convolution: some phases of all output channels."""

    name: str
    down: Side
    along: Side
    layer: Layer
    plan: PixelPlan | PointwisePlan
    start: int  # of its weights among those of all parts

    @property
    def packed(self) -> tuple[int, ...]:
        """The shape of its weights: blocks of channels, input channels, window, channels."""
        blocks, rows = self.layer.blocks
        return (blocks, self.layer.kernel[1], *self.layer.window, rows)


@dataclass(frozen=True)
class TransposedPlan:
    """The convolutions of which a transposed one is made."""

    upsampling: Upsampling
    parts: tuple[Part, ...]
    machine: Machine

    def __str__(self) -> str:
        down, along = self.upsampling.strides
        return f"{down} x {along} phases; " + "; ".join(str(p.plan) for p in self.parts)

    @property
    def rows_from(self) -> tuple[int, int]:
        """The first `a` of each axis; see above."""
        u = self.upsampling
        return u.before[0] // u.strides[0], u.before[1] // u.strides[1]

    @property
    def weights(self) -> int:
        """Elements of the packed weights of all parts."""
        last = self.parts[-1]
        return last.start + math.prod(last.packed)

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the parts, and of what they are of the whole."""
        u, start = upsampling_of(_transposed(ops)), 0
        yield from unlike("the upsampling", self.upsampling, u)
        for part in self.parts:
            for n, side in enumerate((part.down, part.along)):
                # Pixels that the phases reach, from the first on.
                last = (u.before[n] // u.strides[n] + part.layer.out[2 + n]) * u.strides[n]
                yield from uncovered("pixels", u.out[n], last - u.before[n])
                yield from outside("phases", side.first + side.count, 1, u.strides[n])
                taps = -(-(u.window[n] - side.first) // u.strides[n])
                yield from unlike("taps", side.taps, taps)
            yield from unlike("blocks across groups", part.layer.is_across, False)
            yield from (f"{part.name}: {text}" for text in part.plan.faults(part.layer, cpu))
            yield from outside(f"start of {part.name}", part.start, start, start)
            start += math.prod(part.packed)
        weights = u.channels * u.out_channels * math.prod(u.window)
        yield from uncovered("weights", weights, self.weights)
        phases = sum(part.down.count * part.along.count for part in self.parts)
        with_taps = min(u.window[0], u.strides[0]) * min(u.window[1], u.strides[1])
        yield from outside("phases", phases, with_taps, with_taps)


def sides(window: int, stride: int) -> list[Side]:
    """The phases of an axis: those with one tap more, the others."""
    more, taps = window % stride, window // stride
    found = [Side(0, more, taps + 1), Side(more, stride - more, taps)]
    return [side for side in found if side.count and side.taps]


def plan(ops: Ops, machine: Machine) -> TransposedPlan:
    """The plan of the one transposed convolution among the ops."""
    op = _transposed(ops)
    u = upsampling_of(op)
    parts: list[Part] = []
    start = 0
    for down in sides(u.window[0], u.strides[0]):
        for along in sides(u.window[1], u.strides[1]):
            name = f"{op.name}_{len(parts)}"
            parts.append(_part(op, name, u, down, along, start, machine))
            start += math.prod(parts[-1].packed)
    return TransposedPlan(u, tuple(parts), machine)


def _transposed(ops: Ops) -> OpView:
    (op,) = (view for view in ops if view.kind.endswith("d_transpose"))
    return op


def upsampling_of(op: OpView) -> Upsampling:
    """Where the pixels of a transposed convolution come from."""
    return Upsampling.of([op.inputs[0][0], op.inputs[1][0]], op.outputs[0][0], op.attrs)


def _part(
    op: OpView, name: str, u: Upsampling, down: Side, along: Side, start: int, machine: Machine
) -> Part:
    """The convolution of some phases. A pair of extents is of rows and columns."""
    pads, sizes = [], []
    for side, n in ((down, 0), (along, 1)):
        first = u.before[n] // u.strides[n]
        last = (u.out[n] - 1 + u.before[n]) // u.strides[n]
        sizes.append(last - first + 1)
        before = side.taps - 1 - first  # below 0: the first rows of the image are not read
        pads.append((before, sizes[-1] + side.taps - 1 - u.image[n] - before))
    (top, bottom), (left, right) = pads
    channels = u.out_channels * down.count * along.count
    attrs = {
        "strides": (1, 1), "dilation": (1, 1), "padding": (top, left, bottom, right), "groups": 1,
    }  # fmt: skip
    layer = Layer(
        name, (u.batch, u.channels, *u.image), (channels, u.channels, down.taps, along.taps),
        (u.batch, channels, *sizes), attrs, "float32", row_blocks(channels),
    )  # fmt: skip
    # Lanes are pixels: the interleaved write reads neighbours of them.
    made = fastest(forms_of_pixels(layer, machine), machine)
    return Part(name, down, along, layer, made, start)
