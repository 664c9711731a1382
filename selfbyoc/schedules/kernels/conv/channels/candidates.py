"""Register tiles of a convolution whose lanes are channels, by their time: a model."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .....machine import Machine
from ....steps.tiles import BLOCK, RegisterTile
from ..lanes import Lanes, lanes_of
from ..layer import Layer
from ..pack import rows_of_one, whole_blocks
from ..tiles import TRANSPOSE_CYCLES, TRANSPOSE_FLAT_CYCLES, pixels_read, time_of
from .plan import ChannelPlan

# Pixels of a row. Wider ones fill lanes of pixels, and tiles that are not equal would be too much
# code. Equal ones pay where an operand may be an element in memory. Zen 4, 3x3 at stride 2, by
# pixels and so, Nov 2026: 64x56x56 to 128 AVX-512 1190 us and 1070, AVX2 1214 and 1630; 64x112x112
# to 64 2749 and 2385, 2703 and 3361.
LEAST_WIDTH, MOST_WIDTH = 4, 20
MOST_FLAT_PIXELS = 64  # pixels of an image that is one row: uneven tiles are unrolled
# More time for each register that is missing. 1x256x14x14 to 256, 3x3 at stride 2: 10 x 2 vectors,
# 11 too few, 382 us, 7 x 2 318; 8x32x1x24 by 1x5, 12 x 2, 10 too few, 21 us, 8 x 2 12; by 1x3, 8
# too few, 10.5 and 8.3 (Zen 4, Nov 2026).
SPILL_TIME = 0.02
FEW_PIXELS = 6  # of a tile: fewer read a weight too often
# Pixels of a tile below the most without a window: the last tile of a row may be too small then, as
# of 49 in tiles of 6. One core of Zen 3 (Nov 2026): 160x7x7 to 960 by 6 pixels 207 us, by 5 194.
FEWER_PIXELS = 2
# Steps of a tile that the next one's overlap with. Of more the last one of a row waits for its own
# sums: 960x7x7 to 80 by rows of 4 and 3 pixels 149 us, 49 by 5 102 (Zen 3, Nov 2026).
OVERLAPPING = 16


def usual_channels(layer: Layer, cpu: Machine) -> list[ChannelPlan]:
    """Plans of several register tiles, that which takes the least time first; none where blocks are
    no full vectors, or rows of pixels do not fill registers.
    """
    whole, (height, width) = layer.unstrided(), layer.out[2:]
    p = lanes_of(whole.image[2:], whole.out[2:], whole.window, whole.attrs)
    p = replace(p.of_rows(p.height, 1, 1), copies=not p.is_whole)
    fits = layer.blocks[1] == BLOCK and (layer.groups == 1 or _is_of_groups(layer))
    flat = height * width <= MOST_FLAT_PIXELS
    if not fits or not (flat or width >= LEAST_WIDTH):
        return []
    forms = [is_flat for is_flat in (True, False) if flat or not is_flat]
    found = [plan for is_flat in forms for plan in _shapes(layer, p, is_flat, cpu)]
    return sorted((_timed(layer, plan, cpu) for plan in found), key=lambda plan: plan.cycles)


def _is_of_groups(layer: Layer) -> bool:
    """Whether each block of the weight is of one group, as it is packed."""
    whole = layer.blocks == whole_blocks(layer.out[1], layer.groups)
    has_size = rows_of_one(layer.out[1] // layer.groups) > 0
    return whole and has_size and not layer.is_depthwise and not layer.is_across


def _shapes(layer: Layer, p: Lanes, is_flat: bool, cpu: Machine) -> list[ChannelPlan]:
    """Two blocks of channels, three, one, or one vector, by as many pixels as fit."""
    vector = min(BLOCK, cpu.lanes("float32"))
    group = layer.out[1] // layer.groups if layer.groups > 1 else 0
    size, strides = (layer.out[2], layer.out[3]), layer.strides
    found = []
    for pair, wide in dict.fromkeys(((2, BLOCK), (3, BLOCK), (1, BLOCK), (1, vector))):
        plan = ChannelPlan(p, size, strides, is_flat, pair, 1, wide, vector, group=group)
        most = _most_pixels(plan.tile.vectors, cpu)
        if most and layer.blocks[0] // layer.groups % pair == 0:
            few = FEW_PIXELS if _reuses(layer, plan, cpu) else max(1, most - FEWER_PIXELS)
            widths = {_even_part(plan.width, n) for n in range(min(most, few), most + 1)}
            if not is_flat and plan.width > MOST_WIDTH:
                widths = {n for n in widths if plan.width % n == 0 and cpu.broadcasts}
            found += [replace(plan, pixels=width) for width in sorted(widths, reverse=True)]
    return found


@lru_cache(maxsize=4096)  # every convolution asks for several, of few machines
def _most_pixels(vectors: int, cpu: Machine) -> int:
    """Pixels of a tile with so many vectors of channels, at most; 0: it fits no registers."""
    return max((n for n in range(1, 33) if RegisterTile(n, vectors).fits(cpu)), default=0)


def _even_part(extent: int, most: int) -> int:
    """The size of parts of an extent, as few and as even as can be; the last may be smaller."""
    return -(-extent // -(-extent // most))


def _timed(layer: Layer, p: ChannelPlan, cpu: Machine) -> ChannelPlan:
    """With its time: of the tiles of a row, for all of them, and to transpose the result."""
    blocks = layer.blocks[0] // p.pair
    alone = p.is_flat or cpu.is_even(layer.out[0] * blocks)
    tasks = layer.out[0] * blocks * (1 if alone else p.rows)
    whole, last = divmod(p.width, p.pixels)
    ready = replace(cpu, latency=1) if layer.steps <= OVERLAPPING else cpu
    tiles = whole * time_of(p.tile, cpu)
    tiles += time_of(replace(p, pixels=last).tile, ready) if last else 0
    row = tiles * BLOCK / p.wide
    turned = TRANSPOSE_FLAT_CYCLES if p.is_flat else TRANSPOSE_CYCLES
    row += p.width * p.pair * BLOCK * turned / layer.steps
    rows = -(-tasks // cpu.cores) * (p.rows if alone else 1)
    return replace(p, cycles=rows * row * (1 + SPILL_TIME * _spilled(layer, p, cpu)))


def _spilled(layer: Layer, p: ChannelPlan, cpu: Machine) -> int:
    """Registers too few for the sums, the weights and all pixels that several taps of a row of the
    window read (of a column, where rows are one and the window is no wider): LLVM keeps those,
    broadcast, where an operand could be one for nothing.
    """
    if not _reuses(layer, p, cpu):
        return 0
    (high, wide), (down, across) = layer.window, layer.attrs["dilation"]
    taps, apart = (wide, across) if wide > 1 else (high, down * p.lanes.pitch)
    stride = layer.strides[1]
    read = pixels_read(p.pixels, taps, stride, apart)
    return max(0, p.tile.sums + p.tile.vectors + read - cpu.vector_registers)


def _reuses(layer: Layer, p: ChannelPlan, cpu: Machine) -> bool:
    """Whether pixels stay broadcast in registers from tap to tap."""
    high, wide = layer.window
    return cpu.broadcasts and (wide > 1 or (p.is_flat and high > 1))
