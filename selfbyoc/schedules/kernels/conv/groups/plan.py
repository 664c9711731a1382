"""The plan of a depthwise or grouped convolution whose lanes are groups: for images too small to
fill lanes of pixels, and for windows of many taps. A vector holds the same channel of neighbouring
groups.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .....machine import Machine
from ....steps.blocks import stored_at_once
from ....steps.candidates import divisors
from ....steps.faults import Faults, spilled, undivided, unlike
from ....steps.tiles import BLOCK, RegisterTile
from ..layer import Layer
from ..tiles import pixels_read, time_of
from ..window import Window, window_of

# More time for each register that is missing. 192x28x28, 7x7, AVX-512, a row of 14 pixels 92 us,
# two of them 168; 96x92x92, 23 pixels 1072, 4 775 (Zen 4, Nov 2026).
SPILL_TIME = 0.04
RANK = 6  # of a packed weight: [G/16, O/G, I, H, W, 16]; other layouts have 5 dimensions


@dataclass(frozen=True)
class GroupPlan:
    """Lanes are groups; a task is 16 groups of an image. Pairs are (vertical, horizontal)."""

    groups: int
    inner: int  # input channels of a group
    image: tuple[int, int]
    framed: tuple[int, int]  # rows and columns under the windows, with padding
    before: tuple[int, int]  # padding above and on the left
    strides: tuple[int, int]
    dilation: tuple[int, int]
    tile: tuple[int, int, int]  # channels of a group, rows and columns of a register tile
    vector: int  # lanes of a register
    window: Window  # which of its loops are unrolled
    row: int  # pixels of the result that are stored at a time; 0: no vectors

    def __str__(self) -> str:
        channels, rows, columns = self.tile
        tile = f"{channels} channels x {rows} x {columns} pixels"
        return f"groups as lanes, register tile {tile}, a task is {BLOCK} groups"

    @property
    def task_bytes(self) -> int:
        """What the windows of a task read."""
        return 4 * BLOCK * self.inner * self.framed[0] * self.framed[1]

    @property
    def is_padded(self) -> bool:
        """Whether windows read zeros around the image."""
        return self.framed != self.image or any(self.before)

    def faults(self, layer: Layer, cpu: Machine) -> Faults:
        """Of this plan for a layer."""
        own = self.groups, self.inner, self.image, self.before, self.strides, self.dilation
        a, (high, wide) = layer.attrs, layer.out[2:]
        image, before = layer.image[2:], a["padding"][:2]
        told = layer.groups, layer.kernel[1], image, before, a["strides"], a["dilation"]
        yield from unlike("the windows", own, told)
        last = [(n - 1) * step for n, step in zip((high, wide), self.strides, strict=True)]
        reach = [(n - 1) * step for n, step in zip(layer.window, self.dilation, strict=True)]
        under = tuple(first + more + 1 for first, more in zip(last, reach, strict=True))
        yield from unlike("rows and columns under windows", self.framed, under)
        yield from unlike("a vector", self.vector, min(BLOCK, cpu.lanes("float32")))
        yield from spilled(_shape(self.tile), cpu, 1)
        sizes = (layer.out[1] // layer.groups, *layer.out[2:])
        for extent, part in zip(sizes, self.tile, strict=True):
            yield from undivided("channels, rows or columns", extent, part)
        yield from undivided("pixels", high * wide, self.row or 1)


def planned_groups(layer: Layer, cpu: Machine) -> GroupPlan:
    """The plan, whether it pays or not."""
    groups, window = layer.attrs["groups"], layer.window
    strides, dilation, pads = (layer.attrs[k] for k in ("strides", "dilation", "padding"))
    high, wide = (
        (layer.out[2 + n] - 1) * strides[n] + (window[n] - 1) * dilation[n] + 1 for n in (0, 1)
    )
    tile = _tile(layer, cpu)
    vector = min(BLOCK, cpu.lanes("float32"))
    return GroupPlan(
        groups=groups,
        inner=layer.kernel[1],
        image=(layer.image[2], layer.image[3]),
        framed=(high, wide),
        before=(pads[0], pads[1]),
        strides=(strides[0], strides[1]),
        dilation=(dilation[0], dilation[1]),
        tile=tile,
        vector=vector,
        window=window_of(layer, _shape(tile)),
        row=_stored(layer.out[2] * layer.out[3], vector),
    )


def _stored(pixels: int, vector: int) -> int:
    """Pixels that are stored at a time: all of a small image, whose rows are no vectors. 960x7x7
    under 5x5 and hard-swish, one core of Zen 3: 49 at a time 83 us, 7 at a time 83 to 122
    (Nov 2026).
    """
    return pixels if pixels <= min(8 * vector, 4 * BLOCK) else stored_at_once(pixels, vector)


def _shape(tile: Sequence[int]) -> RegisterTile:
    """What is shared of channels, rows and columns: a weight by all pixels, a pixel by channels."""
    return RegisterTile(tile[1] * tile[2], tile[0])


def _tile(layer: Layer, cpu: Machine) -> tuple[int, int, int]:
    """A register tile that divides the result, with the least time a sum."""
    most, extents = cpu.vector_registers, (layer.out[1] // layer.groups, *layer.out[2:])
    sizes = itertools.product(*(divisors(extent, most) for extent in extents))
    fitting = [(o, y, x) for o, y, x in sizes if _shape((o, y, x)).fits(cpu, 1)]

    def cost(tile: tuple[int, int, int]) -> tuple[float, int, int]:
        shape = _shape(tile)
        time = time_of(shape, cpu) * (1 + SPILL_TIME * _spilled(layer, tile, cpu))
        return round(time / shape.sums, 3), -tile[2], -tile[1]

    return min(fitting, key=cost)


def _spilled(layer: Layer, tile: Sequence[int], cpu: Machine) -> int:
    """Registers too few for the sums, a weight, and the pixels that the taps of a row share, which
    LLVM loads once.
    """
    taps, stride, apart = layer.window[1], layer.attrs["strides"][1], layer.attrs["dilation"][1]
    if taps == 1:
        return 0
    read = pixels_read(tile[2], taps, stride, apart)
    return max(0, math.prod(tile) + read + 1 - cpu.vector_registers)
