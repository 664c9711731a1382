"""The plan of a resized image: which of its two passes comes first, or channels as lanes."""

from __future__ import annotations

from dataclasses import dataclass

from ....codegen.info.ops import Ops, OpView
from ....language.decisions import choose
from ....machine import Machine
from ....ops.resampling import Resampling, axes_of
from ...steps.blocks import stored_at_once
from ...steps.faults import Faults, undivided, unlike

# Along the rows of the image, then down; or down to the rows of the result, then along these
ALONG, DOWN, CHANNELS = "along", "down", "channels"
MOST_APART = 4  # pixels of the image for each of the result
MOST_VECTORS = 32  # of an unrolled row
IMAGES_A_CORE = 4  # as tasks these are even enough; fewer are cut into rows


@dataclass(frozen=True)
class ResizePlan:
    """How one resize2d is computed."""

    name: str
    down: Resampling
    along: Resampling
    first: str  # ALONG, DOWN or CHANNELS
    lanes: int  # of a vector
    images: int  # of one channel
    by_image: bool  # a task is an image; else a row
    width: int = 0  # columns that are shuffled at once, their places known; 0: by a table

    def __str__(self) -> str:
        if self.first == CHANNELS:
            return "pixel by pixel, lanes are channels"
        order = {ALONG: "along each row, then down", DOWN: "down, then along each row"}
        how = f"{self.width} columns at once" if self.width else "column by column"
        return f"{order[self.first]}, {how}, a task is {'an image' if self.by_image else 'a row'}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan."""
        (resize,) = ops
        shape = resize.inputs[0][0]
        apart = shape[3] if self.first == CHANNELS else shape[1]
        yield from unlike("axes", (self.down, self.along), tuple(axes_of(resize.attrs, shape)))
        yield from unlike("images", self.images, shape[0] * apart)
        yield from unlike("lanes", self.lanes, cpu.lanes("float32"))
        if self.width:
            yield from undivided("a row of the result", self.along.out, self.width)


def plan(ops: Ops, machine: Machine) -> ResizePlan:
    """The plan of a composite that is one resize2d."""
    (resize,) = ops
    image, _ = resize.inputs[0]
    down, along = axes_of(resize.attrs, image)
    lanes = machine.lanes("float32")
    if resize.attrs["layout"] == "NHWC":
        return ResizePlan(resize.name, down, along, CHANNELS, lanes, image[0] * image[3], False)
    images = image[0] * image[1]
    first = _first(resize, down)
    alone = images >= IMAGES_A_CORE * machine.cores
    width = _width(along, resize.attrs["method"], lanes)
    return ResizePlan(resize.name, down, along, first, lanes, images, alone, width)


def _width(along: Resampling, method: str, lanes: int) -> int:
    """Columns at once, of a row that is unrolled: each lane is a known pixel then. Columns far
    apart are taken one by one.
    """
    width = row_width(along.out, lanes)
    near = along.extent <= MOST_APART * along.out and along.out <= MOST_VECTORS * lanes
    return width if width and near and along.formula(method) is not None else 0


def row_width(extent: int, lanes: int) -> int:
    """Elements of a row that are stored at once: whole vectors, or what LLVM cuts into whole ones
    and a tail; 0: one by one. Of a short row all: 1280x1x1 to 7x7 takes 30 us one by one, 14 so
    (AVX-512).
    """
    if 1 < extent < lanes:
        return extent
    return stored_at_once(extent, lanes)


def _first(resize: OpView, down: Resampling) -> str:
    """Columns are taken one by one, rows in vectors: along the fewer rows."""
    usual = ALONG if down.extent < down.out else DOWN
    return str(choose(f"{resize.name}.first", (ALONG, DOWN), usual))
