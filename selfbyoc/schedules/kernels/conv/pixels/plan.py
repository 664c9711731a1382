"""The plan of a window over padded rows of pixels, convolution or pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....language.decisions import choose
from .....machine import LINE, Machine
from ....steps.blocks import stored_at_once
from ....steps.candidates import best, decided
from ....steps.faults import Faults, outside, spilled, too_large, undivided, unlike
from ....steps.tiles import BLOCK, RegisterTile
from ..depth import depth_of
from ..lanes import Lanes, lanes_of, tasks_of_rows
from ..layer import Layer
from ..tiles import tiles_for, time_of
from ..window import UNROLLED, Window, window_of

# The time of tiles that read pixels where they lie, lines of cache crossed and rows far apart, of
# those that read panels: one core of Cascade Lake, AVX2, Nov 2026: 3x224x224 to 64 channels, 7x7 at
# stride 2, 4.65 ms and 3.44; 64x56x56 to 128, 3x3 at stride 2, 2.12 and 1.71.
SCATTERED_TIME = 1.25
LEAST_TILES = 10  # of a task; of fewer the last leaves too many lanes without use
# A channel by itself: its few steps overlap with the next tile's, but many do not. 192x28x28, 7x7,
# of 2 vectors 168 us and 177 with AVX2, of 4 150 and 149, of 6 152 and 140 (Zen 4, Nov 2026).
DEPTHWISE, OF_MANY_TAPS = RegisterTile(1, 2), RegisterTile(1, 6)
MANY_TAPS = 25
# Cycles of a core for such a channel, Zen 5 with AVX-512, Nov 2026: 2x2 to 56x56 pixels.
CHANNEL_CYCLES, ELEMENT_CYCLES = 50.0, 0.5  # to pad its image, and an element of it
# Loads for a vector of pixels under a tap, that lies in two lines. 192x28x28, 7x7, on two cores of
# Zen 4 (one of 64 bytes a cycle): 152 us, with groups as lanes 92.
TAP_LOADS = 1.9


@dataclass(frozen=True)
class PixelPlan:
    """Lanes are pixels of padded rows; a task is some rows of one block of channels."""

    lanes: Lanes
    tile: RegisterTile
    vector: int  # lanes of a register
    window: Window  # which of its loops are unrolled
    row: int  # pixels of a row of the result that are stored at a time; 0: no vectors
    cycles: float = 0.0  # of one core's share, for each input channel and tap
    depth: int = 0  # input channels that are summed at a time; 0: all

    def __str__(self) -> str:
        return f"padded rows of pixels, register tile {self.tile}, {self.lanes}"

    def faults(self, layer: Layer, cpu: Machine, *, in_l1: bool = True) -> Faults:
        """Of this plan for a layer, or a pool; `in_l1`: whether a task's sums are held there."""
        yield from unlike("a vector", self.vector, cpu.lanes("float32"))
        yield from spilled(self.tile, cpu)
        yield from self.lanes.faults(layer, self.tile.vectors * self.vector)
        yield from undivided("a tile's lanes", self.lanes.lanes, self.tile.vectors * self.vector)
        yield from undivided("rows of a block", layer.blocks[1], self.tile.rows)
        channels = layer.kernel[1]
        yield from outside("input channels at a time", self.depth, 0, channels)
        yield from undivided("input channels", channels, self.depth or channels)
        yield from undivided("a row of the result", layer.out[3], self.row or 1)
        if in_l1 and self.lanes.rows > 1:  # of fewer rows there is no task
            task = 4 * BLOCK * self.lanes.rows * self.lanes.pitch
            yield from too_large("a task's sums", task, 2 * cpu.l1_bytes)


def usual_pixels(layer: Layer, cpu: Machine) -> list[PixelPlan]:
    """Plans of several register tiles, that which takes the least time first."""
    lanes = _lanes(layer)
    if layer.is_depthwise:
        tile = OF_MANY_TAPS if layer.steps >= MANY_TAPS else DEPTHWISE
        images = layer.out[0] * layer.out[1]
        made = _timed(layer, lanes, images, tile, cpu)
        time = _channel_cycles(layer, made, cpu) * images / cpu.cores
        return [replace(made, cycles=time / layer.steps)]
    images, tiles = layer.out[0] * layer.blocks[0], tiles_for(layer.blocks[1], cpu)
    found = [_timed(layer, lanes, images, tile, cpu) for tile in tiles]
    return sorted(found, key=lambda p: (round(p.cycles), -p.lanes.rows))


def decided_pixels(layer: Layer, found: Sequence[PixelPlan], cpu: Machine) -> PixelPlan:
    """The plan whose register tile and tasks are chosen."""
    if layer.is_depthwise:
        return _decided(layer, found[0], layer.out[1], cpu)
    made = decided(f"{layer.name}.tile", found, lambda p: p.tile.size)
    return _decided(layer, made, layer.blocks[0], cpu)


def plan_window(layer: Layer, channels: int, cpu: Machine, most: int = 0) -> PixelPlan:
    """The plan of a window over each channel by itself; `most` lanes of a task, if it says so."""
    made = _timed(layer, _lanes(layer), layer.out[0] * channels, DEPTHWISE, cpu, most)
    return _decided(layer, made, channels, cpu, most)


def _lanes(layer: Layer) -> Lanes:
    return lanes_of(layer.image[2:], layer.out[2:], layer.window, layer.attrs)


def _timed(
    layer: Layer, lanes: Lanes, images: int, tile: RegisterTile, cpu: Machine, most: int = 0
) -> PixelPlan:
    """The plan of one tile, and its time."""
    vector = cpu.lanes("float32")
    rows, *_ = _tasks(layer, lanes, images, tile, cpu, most)
    found = lanes.of_rows(rows, tile.vectors * vector, vector)
    made = RegisterTile(tile.rows, max(1, found.lanes // vector))
    vectors = -(-images * found.chunks // cpu.cores) * (found.tiles * found.lanes / vector)
    cycles = vectors * time_of(made, cpu) / made.sums
    row = stored_at_once(layer.out[3], vector)
    time = cycles * layer.blocks[1] * SCATTERED_TIME
    return PixelPlan(found, made, vector, UNROLLED, row, time)


def _channel_cycles(layer: Layer, plan: PixelPlan, cpu: Machine) -> float:
    """Of a channel by itself, all of its taps."""
    p = plan.lanes
    taps = layer.steps * p.chunks * p.tiles * p.lanes / plan.vector
    padded = p.length * math.prod(p.phases)
    return CHANNEL_CYCLES + ELEMENT_CYCLES * padded + TAP_LOADS / cpu.loads * taps


def _input_bytes(layer: Layer, p: Lanes) -> int:
    """What the windows of a tile read; the rows of a channel are in lines of their own."""
    rows = layer.window[0] * min(layer.window[1], p.phases[1])
    return int(layer.kernel[1] * rows * (4 * p.lanes + LINE))


def _tasks(
    layer: Layer, lanes: Lanes, images: int, tile: RegisterTile, cpu: Machine, most: int = 0
) -> tuple[int, ...]:
    """The rows that tasks may have, the best first."""
    vector = cpu.lanes("float32")
    # What a task computes is in about L1 until it is stored. More rows leave fewer lanes without
    # use (conv2d 64x56x56, one core of Zen 5: 512 lanes 1.09 ms, 832 0.97, 1700 0.98).
    most = most or min(2 * cpu.l1_bytes // (4 * BLOCK), _cached(layer, lanes, tile, cpu))
    return tasks_of_rows(lanes, tile.vectors * vector, vector, most, images, cpu.cores)


def _cached(layer: Layer, p: Lanes, tile: RegisterTile, cpu: Machine) -> int:
    """Lanes of whose input L2 holds all channels: each block of output channels reads it again.
    128x56x56 at stride 2, 128 channels, AVX2 of Cascade Lake, Nov 2026: 4.25 ms, of 28 rows 4.75.
    """
    held = cpu.l2_bytes // (4 * layer.image[1] * math.prod(p.phases))
    return max(held, LEAST_TILES * tile.vectors * cpu.lanes("float32"))


def _decided(layer: Layer, p: PixelPlan, blocks: int, cpu: Machine, most: int = 0) -> PixelPlan:
    """A plan with the rows of a task and the unrolled loops that are chosen."""
    image = _lanes(layer)
    found = _tasks(layer, image, layer.out[0] * blocks, p.tile, cpu, most)
    size = p.tile.vectors * p.vector, p.vector
    same = (rows for rows in found if image.cut(rows, *size)[0] == p.lanes.lanes)
    sizes = sorted(best(same, p.lanes.rows, 4))
    lanes = image.of_rows(choose(f"{layer.name}.rows", sizes, p.lanes.rows), *size)
    depth = 0 if layer.blocks[1] == 1 or layer.is_depthwise else _depth(layer, lanes, cpu)
    return replace(p, lanes=lanes, window=window_of(layer, p.tile), depth=depth)


def _depth(layer: Layer, p: Lanes, cpu: Machine) -> int:
    weights = 4 * math.prod(layer.window) * layer.blocks[1]
    return depth_of(layer, _input_bytes(layer, p) // layer.kernel[1] + weights, cpu)
