"""The plan of a window over padded rows of pixels, convolution or pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from .....language.decisions import choose
from .....machine import LINE, Machine
from ....steps.blocks import stored_at_once
from ....steps.candidates import best
from ....steps.tiles import BLOCK, RegisterTile
from ..lanes import Lanes, lanes_of, tasks_of_rows
from ..layer import Layer
from ..tiles import tiles_for, time_of
from ..window import UNROLLED, Window, window_of

# The time of tiles whose input is not in L1 while its rows of channels pass over it, of those whose
# is: 256x28x28 to 256 channels, 3x3 at stride 2, one core of Cascade Lake, Nov 2026: 53% of the
# peak, and 69% with channels as lanes; in AVX2 51% and 58%.
STREAMED_TIME = 1.25
DEPTHWISE = RegisterTile(1, 2)  # a channel by itself; its few steps overlap with the next tile's


@dataclass(frozen=True)
class PixelPlan:
    """Lanes are pixels of padded rows; a task is some rows of one block of channels."""

    lanes: Lanes
    tile: RegisterTile
    vector: int  # lanes of a register
    window: Window  # which of its loops are unrolled
    row: int  # pixels of a row of the result that are stored at a time; 0: no vectors
    cycles: float = 0.0  # of one core's share, for each input channel and tap

    def __str__(self) -> str:
        return f"padded rows of pixels, register tile {self.tile}, {self.lanes}"


def usual_pixels(layer: Layer, cpu: Machine) -> list[PixelPlan]:
    """Plans of several register tiles, that which takes the least time first."""
    if layer.is_depthwise:
        return [_timed(layer, layer.out[0] * layer.out[1], DEPTHWISE, cpu)]
    blocks, rows = layer.blocks
    found = [_timed(layer, layer.out[0] * blocks, tile, cpu) for tile in tiles_for(rows, cpu)]
    return sorted(found, key=lambda p: (round(p.cycles), -p.lanes.rows))


def decided_pixels(layer: Layer, found: Sequence[PixelPlan], cpu: Machine) -> PixelPlan:
    """The plan whose register tile and tasks are chosen."""
    if layer.is_depthwise:
        return _decided(layer, found[0], layer.out[1], cpu)
    shapes = {(p.tile.rows, p.tile.vectors): p for p in reversed(found)}
    usual = found[0].tile.rows, found[0].tile.vectors
    made = shapes[choose(f"{layer.name}.tile", best(reversed(shapes), usual), usual)]
    return _decided(layer, made, layer.blocks[0], cpu)


def plan_window(layer: Layer, channels: int, cpu: Machine, most: int = 0) -> PixelPlan:
    """The plan of a window over each channel by itself; `most` lanes of a task, if it says so."""
    made = _timed(layer, layer.out[0] * channels, DEPTHWISE, cpu, most)
    return _decided(layer, made, channels, cpu, most)


def _timed(layer: Layer, images: int, tile: RegisterTile, cpu: Machine, most: int = 0) -> PixelPlan:
    """The plan of one tile, and its time."""
    vector = cpu.lanes("float32")
    found = _tasks(layer, images, tile, cpu, most)[0]
    made = replace(tile, vectors=max(1, found.lanes // vector))
    cycles = partial(_time, images=images, tile=made, vector=vector, cpu=cpu)(found)
    plain = PixelPlan(found, made, vector, UNROLLED, stored_at_once(layer.out[3], vector))
    streamed = STREAMED_TIME if _input_bytes(layer, found) > cpu.l1_bytes else 1
    return replace(plain, cycles=cycles * layer.blocks[1] * streamed)


def _input_bytes(layer: Layer, p: Lanes) -> int:
    """What the windows of a tile read; the rows of a channel are in lines of their own."""
    rows = layer.window[0] * min(layer.window[1], p.phases[1])
    return int(layer.kernel[1] * rows * (4 * p.lanes + LINE))


def _tasks(
    layer: Layer, images: int, tile: RegisterTile, cpu: Machine, most: int = 0
) -> list[Lanes]:
    vector = cpu.lanes("float32")
    lanes = lanes_of(layer.image[2:], layer.out[2:], layer.window, layer.attrs)
    time = partial(_time, images=images, tile=tile, vector=vector, cpu=cpu)
    # What a task computes is in about L1 until it is stored. More rows leave fewer lanes without
    # use (conv2d 64x56x56, one core of Zen 5: 512 lanes 1.09 ms, 832 0.97, 1700 0.98).
    most = most or 2 * cpu.l1_bytes // (4 * BLOCK)
    return tasks_of_rows(lanes, tile.vectors * vector, vector, most, time)


def _time(p: Lanes, images: int, tile: RegisterTile, vector: int, cpu: Machine) -> float:
    """Cycles of the core with most tasks for a row of a tile, each input channel and tap."""
    vectors = p.tiles * p.lanes / vector
    return -(-images * p.chunks // cpu.cores) * vectors * time_of(tile, cpu) / tile.sums


def _decided(layer: Layer, p: PixelPlan, blocks: int, cpu: Machine, most: int = 0) -> PixelPlan:
    """A plan with the rows of a task and the unrolled loops that are chosen."""
    found = _tasks(layer, layer.out[0] * blocks, p.tile, cpu, most)
    sizes = sorted(best((o.rows for o in found if o.lanes == p.lanes.lanes), p.lanes.rows, 4))
    rows = choose(f"{layer.name}.rows", sizes, p.lanes.rows)
    lanes = next(o for o in found if o.rows == rows)
    return replace(p, lanes=lanes, window=window_of(layer, p.tile))
