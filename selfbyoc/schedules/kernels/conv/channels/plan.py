"""The plan of a convolution whose lanes are output channels: for images too small to fill lanes of
pixels, of which 7 x 7 fill 77% and 14 x 14 88%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....language.decisions import choose, for_every_size
from .....machine import LINE, Machine
from .....tvm.types import PrimExpr
from ....steps.blocks import divisor
from ....steps.candidates import decided
from ....steps.faults import Faults, outside, spilled, uncovered, undivided, unlike
from ....steps.tensors import split_index
from ....steps.tiles import BLOCK, RegisterTile
from ..depth import depth_of
from ..lanes import Lanes
from ..layer import Layer
from ..window import UNROLLED, Window, window_of

MOST_STEPS = 8  # of k in one run of its loop; more only grow the code
# Products of such a run: of more LLVM loads so early that it spills. 64x112x112 to 64, 3x3 at
# stride 2, 7 x 2 vectors, one core of Zen 4: 1008 of them 2535 us, 504 2385 (Nov 2026).
MOST_OF_STEPS = 512
# Bytes that TVM keeps on the stack. LLVM stores and loads more sums than these around every
# prefetch: 576x4x4 to 192 channels, 8 x 3 vectors, 20.7 us with a prefetch every step, 9.6 with
# four every fourth (Zen 5, Nov 2026).
ON_STACK, LEAST_STEPS = 1024, 4
# Products of a run of steps under a window of one column, whose taps share no pixels: of more LLVM
# broadcasts all pixels of the run first, and stores them. One core of Zen 4: 192x17x17 to 224 by
# 7x1, 9 x 2 vectors, 504 products 2123 us, 252 1923, 126 1545; 128x17x17 to 128 by 3x1, 216 316 us,
# 108 272; AVX2 takes the same time (Nov 2026).
MOST_OF_COLUMNS = 160
# Without a window, of no prefetches. In a loop of one step LLVM spilled sums though registers were
# free: 480x14x14 to 112, 5 x 2 vectors, one core of Zen 3, 555 us; of 2 steps 284, of 4 280; of 8
# 275, but then a tile of 4 x 2 spills (Nov 2026).
STEPS = 4
# Pixels of a row, and lanes, to transpose it in registers. By 4 lanes (SSE) LLVM 10 took more than
# 45 s for 40x7x7 to 32, 1x1, with gathers 2.
LEAST_TURNED, LEAST_LANES = 4, 8
# Bytes of a piece of weight, of which the next is prefetched. Weights in memory, Zen 5, Nov 2026:
# 512x2x2, 3x3, 231 us by tasks of 295 KB, 191 by pieces of 16 KB, 187 of 48; 512x4x4 252, 219 and
# 211; 256x4x4 72, 59 and 57; 1024x4x4 by 1x1, 8 KB 112, 16 KB 104, 32 KB 102, by tasks 103.
PIECE_BYTES = 32 * 1024


@dataclass(frozen=True)
class ChannelPlan:
    """Lanes are channels; a register tile is pixels of a row by vectors of channels. An image that
    is read without a window is one row.
    """

    lanes: Lanes  # of the image that is read, without a stride: elements are read one by one
    size: tuple[int, int]  # of the result: rows, and pixels of each
    strides: tuple[int, int]  # from window to window in these lanes
    is_flat: bool  # whether the image is one row
    pair: int  # blocks of channels of a tile
    pixels: int
    wide: int  # channels of a block in a tile
    vector: int  # lanes of a register
    window: Window = UNROLLED  # which of its loops are unrolled
    group: int = 0  # output channels of a group, where there are several
    blocks_alone: bool = False  # a task is a pair of blocks, not a row of it
    prefetch: int = 0  # steps of k between two groups of prefetches of the next piece of weight
    piece: int = 0  # such groups for each piece; 0: it is the next task's
    cycles: float = 0.0  # of one core's share, for each input channel and tap
    depth: int = 0  # input channels that are summed at a time; 0: all
    by_images: bool = False  # a task is an image, all blocks of it, and pads it
    steps: int = 1  # of k in one run of its loop, where none prefetches
    is_turned: bool = False  # the result is transposed in registers: tasks have whole blocks
    in_memory: bool = False  # sums of a row, which parts are added to, are not on the stack

    def __str__(self) -> str:
        task = "blocks of channels" if self.blocks_alone else "rows of blocks of channels"
        task = "images" if self.by_images else task
        ahead = ", the next weights prefetched" if self.prefetch else ""
        return f"channels as lanes, register tile {self.tile}, tasks are {task}{ahead}"

    @property
    def tile(self) -> RegisterTile:
        """Rows are pixels."""
        return RegisterTile(self.pixels, self.pair * -(-self.wide // self.vector))

    @property
    def is_apart(self) -> bool:
        """Whether zeros stand between the channels of two groups."""
        return self.group % BLOCK > 0

    @property
    def rows(self) -> int:
        """Rows of the image."""
        return 1 if self.is_flat else self.size[0]

    @property
    def width(self) -> int:
        """Pixels of a row."""
        return math.prod(self.size) if self.is_flat else self.size[1]

    @property
    def is_even(self) -> bool:
        """Whether the tiles of a row are equal, and neighbouring pixels are so everywhere."""
        down, along = self.strides
        joins = self.is_flat and down * self.lanes.pitch != along * self.size[1]
        return not joins and self.width % self.pixels == 0

    def lane(self, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        """Where a pixel of a row lies in the image that is read."""
        if self.is_flat:
            y, x = split_index(x, self.size[1])
        down, along = self.strides
        return y * down * self.lanes.pitch + x * along

    def faults(self, layer: Layer, cpu: Machine) -> Faults:
        """Of this plan for a layer in the blocks that its weight is packed in."""
        depth = self.depth or layer.kernel[1]
        of_group = layer.out[1] // layer.groups if layer.groups > 1 else 0
        yield from unlike("channels of a group", self.group, of_group)
        yield from unlike("a vector", self.vector, min(BLOCK, cpu.lanes("float32")))
        yield from spilled(self.tile, cpu)
        yield from unlike("the result", self.size, tuple(layer.out[2:]))
        yield from unlike("strides", self.strides, layer.strides)
        yield from self.lanes.faults(layer.unstrided(), 1)
        yield from undivided("blocks of a group", layer.blocks[0] // layer.groups, self.pair)
        yield from outside("pixels of a tile", self.pixels, 1, self.width)
        yield from undivided("a block", BLOCK, self.wide)
        yield from undivided("channels of a tile", self.wide, self.vector)
        yield from uncovered("channels", layer.out[1], layer.blocks[0] * BLOCK)
        if layer.is_across:
            yield f"{self.group} channels of a group, packed in blocks across groups"
        yield from undivided("input channels", layer.kernel[1], depth)
        if self.by_images and not (self.blocks_alone and self.lanes.copies):
            yield "tasks are images, and copy none"
        if self.in_memory and (self.is_even or depth == layer.kernel[1]):
            yield "sums of a row in memory, of no parts or of equal tiles"
        yield from undivided("input channels at a time", depth, self.steps)
        if self.is_turned:
            yield from undivided("channels of a task", layer.out[1], self.pair * BLOCK)
        if self.prefetch:
            yield from undivided("input channels at a time", depth, self.prefetch)
            yield from undivided("prefetches", depth // self.prefetch, self.piece or 1)
        else:
            yield from unlike("pieces of a weight that is not prefetched", self.piece, 0)


def decided_channels(layer: Layer, found: Sequence[ChannelPlan], cpu: Machine) -> ChannelPlan:
    """The plan whose register tile and tasks are chosen."""
    name = f"{layer.name}.tile"
    p = decided(name, found, lambda p: (p.is_flat, p.pair, p.pixels, p.wide))
    alone = p.is_flat or cpu.is_even(layer.out[0] * layer.blocks[0] // p.pair)
    ways = (True,) if p.is_flat else (False, True)
    alone = choose(f"{layer.name}.blocks_alone", ways, alone)
    # 7x7 pixels, 512 to 2048 channels, the weight in memory: 318 -> 250 us (Zen 5, Nov 2026).
    p = replace(p, blocks_alone=alone, depth=_depth(layer, p, cpu))
    p = replace(p, by_images=alone and _pads_by_images(layer, p, cpu))
    p = replace(p, prefetch=_prefetch(layer, p) if alone else 0)
    p = replace(p, piece=_piece(layer, p) if p.prefetch else 0)
    if not p.prefetch and layer.is_plain:
        p = replace(p, steps=divisor(p.depth, STEPS))
    whole = not p.is_apart and layer.out[1] % (p.pair * BLOCK) == 0
    wide = p.vector >= LEAST_LANES and p.width >= LEAST_TURNED
    p = replace(p, is_turned=whole and wide)
    p = replace(p, in_memory=_is_in_memory(layer, p, cpu))
    return replace(p, window=window_of(layer, p.tile))


def _pads_by_images(layer: Layer, p: ChannelPlan, cpu: Machine) -> bool:
    """Where each core has images of its own, it pads them itself: of a copy made before, it reads
    what another core wrote. L2 holds the weight, which every image reads.

    8x32x1x24 by 1x5, two cores: 16 us and 31, as they share a cache or not, then 15 and 15 (Zen 4).
    """
    weight = 4 * layer.blocks[0] * BLOCK * layer.steps
    even = p.lanes.copies and cpu.is_even(layer.out[0])
    return even and 2 * weight <= cpu.l2_bytes and not for_every_size()


def _is_in_memory(layer: Layer, p: ChannelPlan, cpu: Machine) -> bool:
    """Whether the sums of a row, which those of parts of the channels are added to, are more than
    registers hold, but so few that TVM keeps them on the stack: where the tiles of a row are
    unrolled, LLVM makes values of them, and spills those of the tile that is computed.

    480x14x14 to 112, one core of Zen 3: 451 us on the stack, in memory 280 (Nov 2026).
    """
    if p.is_even or p.depth == layer.kernel[1]:
        return False
    sums = p.width * p.pair * BLOCK
    return 4 * sums <= ON_STACK and sums > cpu.vector_registers * p.vector


def _prefetch(layer: Layer, p: ChannelPlan) -> int:
    """Steps of k for which a line each of the next task's weight is prefetched."""
    if p.by_images and layer.blocks[0] == p.pair:
        return 0  # there is no other
    tiles = p.rows * -(-p.width // p.pixels) * (BLOCK // p.wide)
    channels = layer.kernel[1]
    lines = p.pair * channels * math.prod(layer.window) * BLOCK * 4 // LINE
    products = p.tile.sums * math.prod(layer.window)
    steps = min(MOST_STEPS, max(1, MOST_OF_STEPS // products), tiles * channels // lines)
    least = 1 if 4 * p.tile.sums * p.vector <= ON_STACK else LEAST_STEPS
    most = MOST_STEPS
    if layer.window[1] == 1 < layer.window[0]:
        most = max(1, MOST_OF_COLUMNS // (layer.window[0] * p.tile.sums))
    return divisor(p.depth, min(most, max(least, steps)))


def _piece(layer: Layer, p: ChannelPlan) -> int:
    """Groups of prefetches of a piece of the weight; 0 without a window: its tasks read little."""
    taps, groups = math.prod(layer.window), (p.depth or layer.kernel[1]) // p.prefetch
    each = 4 * p.pair * BLOCK * taps * p.prefetch
    return 0 if taps == 1 else divisor(groups, max(1, PIECE_BYTES // each))


def _depth(layer: Layer, p: ChannelPlan, cpu: Machine) -> int:
    """Channels of which L1 holds all pixels of a task, or of a row, and the weights."""
    read = p.lanes.length
    if not p.is_flat:
        read = min(read, layer.window[0] * layer.image[3])  # of the rows under a window
    weights = math.prod(layer.window) * p.pair * BLOCK
    return depth_of(layer, 4 * (read + weights), cpu)
