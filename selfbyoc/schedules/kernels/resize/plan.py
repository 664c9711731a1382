"""The plan of a resized image: which of its two passes comes first, or channels as lanes."""

from __future__ import annotations

from dataclasses import dataclass

from ....codegen.info.ops import Ops, OpView
from ....language.decisions import choose
from ....machine import Machine
from ....ops.resampling import Resampling, axes_of

# Along the rows of the image, then down; or down to the rows of the result, then along these
ALONG, DOWN, CHANNELS = "along", "down", "channels"
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

    def __str__(self) -> str:
        if self.first == CHANNELS:
            return "pixel by pixel, lanes are channels"
        order = {ALONG: "along each row, then down", DOWN: "down, then along each row"}
        return f"{order[self.first]}, a task is {'an image' if self.by_image else 'a row'}"


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
    return ResizePlan(resize.name, down, along, first, lanes, images, alone)


def _first(resize: OpView, down: Resampling) -> str:
    """Columns are taken one by one, rows in vectors: along the fewer rows."""
    usual = ALONG if down.extent < down.out else DOWN
    return str(choose(f"{resize.name}.first", (ALONG, DOWN), usual))
