"""The plan of a 1x1 convolution as a matrix product over the flat pixels of an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....language.decisions import choose
from .....machine import Machine
from ....steps.candidates import best, decided
from ....steps.faults import Faults, outside, spilled, undivided, unlike
from ....steps.tiles import RegisterTile
from ..depth import depth_of
from ..lanes import Lanes, lanes_of
from ..layer import Layer
from ..tiles import tiles_for, time_of
from ..window import UNROLLED, Window, window_of

MOST_TASK_TILES = 8  # tiles of a task where the last one is cut
FEW_BLOCKS = 2  # blocks of output channels, for which the image is read where it lies, if it can be

LEAST_UNIT = 4  # pixels that are packed at a time
# Cycles to pack a vector: of rows just padded, and of an image or of rows that L2 does not hold.
# 64x112x112 to 64, 3x3 at stride 2, 5.7 (Zen 4, AVX-512, Nov 2026). 256x56x56 to 64
# channels, one core of Cascade Lake, AVX2, Nov 2026: 14% of the time.
PACK, PACK_IMAGE = 1.5, 6.0
# Tasks of a core that pads rows: few, so that it pads by and large what it packs. 24x74x32, 1x3, on
# two cores of Zen 4: 60 us by channels, 49 so; 115 and 68 if they share no cache (Nov 2026).
PADDING_TASKS = 4
# The time of a window's panels that all tasks read, of those of one task: each pixel is packed
# for every tap, more than the caches hold.
WINDOWS_APART = 1.2

IN_PLACE, IN_TASK, APART = "in place", "in each task", "before all tasks"


@dataclass(frozen=True)
class PointwisePlan:
    """Lanes are pixels of the flat image. A panel is the pixels of a tile, all input channels
    together: what is read again for each block of output channels is contiguous.
    """

    pixels: int  # of an image of the result
    tile: RegisterTile
    vector: int  # lanes of a register
    panels: str  # where they are packed
    step: int  # tiles of a task
    by_channels: bool  # the weights are read once, and the image again for each block
    cycles: float = 0.0  # of one core's share, for each input channel and tap
    window: Window = UNROLLED  # which of its loops are unrolled
    padded: Lanes | None = None  # of the image under a window
    unit: int = 0  # pixels of a panel that lie together in the image; 0: all
    depth: int = 0  # input channels that are summed at a time; 0: all

    def __str__(self) -> str:
        order = "channels outermost" if self.by_channels else "pixels outermost"
        tasks = f"{self.step} tiles a task" if self.step > 1 else "a tile a task"
        panels = "read in place" if self.panels == IN_PLACE else f"packed {self.panels}"
        what = "flat pixels" if self.padded is None else "pixels under a window"
        return f"{what} {panels}, register tile {self.tile}, {tasks}, {order}"

    @property
    def lanes(self) -> int:
        """Pixels of a tile."""
        return self.tile.vectors * self.vector

    @property
    def tiles(self) -> int:
        """Tiles over the pixels of an image."""
        return -(-self.pixels // self.lanes)

    def faults(self, layer: Layer, cpu: Machine) -> Faults:
        """Of this plan for a layer."""
        yield from unlike("a vector", self.vector, cpu.lanes("float32"))
        yield from unlike("pixels", self.pixels, math.prod(layer.out[2:]))
        yield from spilled(self.tile, cpu)
        yield from undivided("rows of a block", layer.blocks[1], self.tile.rows)
        yield from outside("tiles of a task", self.step, 1, min(self.tiles, MOST_TASK_TILES))
        yield from undivided("input channels", layer.kernel[1], self.depth or layer.kernel[1])
        if self.panels == IN_PLACE:  # nothing tells what is outside
            yield from undivided("pixels in place", self.pixels, self.lanes)
        if (self.padded is None) != layer.is_plain:
            yield f"{self} of a window {layer.window}"
        if self.padded is None:
            yield from unlike("pixels together of an image that is not padded", self.unit, 0)
        else:
            yield from self.padded.faults(layer, 1)
            yield from undivided("a tile's lanes", self.lanes, self.unit)
            yield from undivided("a row of the result", layer.out[3], self.unit)


def usual_pointwise(layer: Layer, cpu: Machine) -> list[PointwisePlan]:
    """Plans of several register tiles, that which takes the least time first; none where pixels of
    a row are too few to be packed in vectors.
    """
    if layer.attrs["groups"] > 1 or layer.dtype != "float32":
        return []
    tiles = tiles_for(layer.blocks[1], cpu)
    if layer.is_plain:
        found = [_timed(layer, tile, cpu) for tile in tiles]
    else:
        found = _windowed(layer, tiles, cpu)
    return sorted(found, key=lambda p: p.cycles)


def _windowed(layer: Layer, tiles: Sequence[RegisterTile], cpu: Machine) -> list[PointwisePlan]:
    """With the pixels under each tap of a window packed into the panels, from padded rows."""
    image = lanes_of(layer.image[2:], layer.out[2:], layer.window, layer.attrs)
    tasks = 1 if image.is_whole else PADDING_TASKS * cpu.cores
    image = image.of_rows(-(-image.height // tasks), 1, 1)
    image = replace(image, copies=not image.is_whole)
    held = 4 * math.prod(layer.image) <= cpu.l2_bytes * cpu.cores
    far = 0.0 if held else PACK_IMAGE
    vector, found = cpu.lanes("float32"), []
    for tile in tiles:
        unit = math.gcd(tile.vectors * vector, layer.out[3])
        if unit < LEAST_UNIT:
            continue
        p = _timed(layer, tile, cpu)
        panels = -(-layer.out[0] * p.tiles // cpu.cores)
        pack = max(p.lanes / min(unit, vector) * PACK, far * tile.vectors)
        cycles = p.cycles + panels * pack
        found.append(replace(p, padded=image, unit=unit, panels=IN_TASK, cycles=cycles))
    return found


def decided_pointwise(layer: Layer, found: Sequence[PointwisePlan], cpu: Machine) -> PointwisePlan:
    """The plan whose register tile and tasks are chosen."""
    (blocks, rows), images = layer.blocks, layer.out[0]
    made = decided(f"{layer.name}.tile", found, lambda p: p.tile.size)
    larger = blocks * rows > images * made.tiles * made.lanes
    by_channels = choose(f"{layer.name}.by_channels", (False, True), larger)
    made = replace(made, by_channels=by_channels, step=_step(layer, made, by_channels, cpu))
    groups = images * -(-made.tiles // made.step)
    if made.pixels % made.lanes == 0 and blocks <= FEW_BLOCKS and layer.is_plain:
        return made
    taps = math.prod(layer.window)
    depth = depth_of(layer, 4 * (made.lanes + rows) * taps, cpu)
    made = replace(made, window=window_of(layer, made.tile))
    # A region by itself costs a microsecond or two; a panel in a task is still in L1.
    apart = by_channels or not cpu.is_even(groups)
    return replace(made, panels=APART if apart else IN_TASK, depth=depth)


def _timed(layer: Layer, tile: RegisterTile, cpu: Machine) -> PointwisePlan:
    pixels, vector = math.prod(layer.out[2:]), cpu.lanes("float32")
    tiles = -(-pixels // (tile.vectors * vector))
    tasks = layer.out[0] * layer.blocks[0] * tiles
    steps = -(-tasks // cpu.cores) * layer.blocks[1] // tile.rows
    packing = -(-layer.out[0] * tiles // cpu.cores) * tile.vectors * PACK_IMAGE
    cycles = steps * time_of(tile, cpu) + (packing if layer.is_plain else 0)
    return PointwisePlan(pixels, tile, vector, IN_PLACE, 1, False, cycles)


def _step(layer: Layer, p: PointwisePlan, by_channels: bool, cpu: Machine) -> int:
    """Tiles of a task: one, but where the last is cut as many as keep the cores even; the others
    are computed without a test then.
    """
    if p.pixels % p.lanes == 0 or p.tiles == 1:
        return 1
    images, blocks = layer.out[0], layer.blocks[0]

    def longest(step: int) -> tuple[float, int]:
        groups = -(-p.tiles // step)
        alone = images * groups if cpu.is_even(images * groups) and not by_channels else 0
        tasks = alone or images * blocks * groups
        share = 1 if alone else blocks
        worse = 1 if alone or layer.is_plain else WINDOWS_APART
        return round(worse * -(-tasks // cpu.cores) * min(step, p.tiles) / share, 6), -step

    steps: Sequence[int] = range(2, min(p.tiles, MOST_TASK_TILES) + 1)
    usual = min(steps, key=longest)
    return choose(f"{layer.name}.tiles_of_a_task", best(sorted(steps, key=longest), usual), usual)
