"""Register tiles of direct convolutions whose lanes are channels (channel_lanes.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....codegen.prefetch import LINE
from ....language.decisions import choose
from ....machine import Machine
from ...steps.blocks import Facts, divisor
from ...steps.loops import ask_ahead, ask_early, is_even, parallel_over, vectorize
from .direct_tiles import Work, accumulate, image_of

MOST_STEPS = 8  # of k in one run of its loop; more only grow the code


def tile_channels(work: Work, block: Facts) -> None:
    """for one or two blocks of channels: for row of pixels: acc[pixels][channels] = 0; for k: acc
    += ...; store.

    Blocks alone are the tasks where these are even, and each asks for the weight of the next.
    """
    sch, lanes, image = work.sch, work.cpu.lanes(block.dtype), image_of(block)
    _, blocks, _, width, channels = block.shape
    pair, pixels, wide = _channel_shape(block, work.cpu)
    copy = sch.cache_write(block.block, 0, "local")
    if image is None:
        n, b, y, x, lane = sch.get_loops(copy)
        b, bi = sch.split(b, [None, pair])
        sch.reorder(n, b, y, bi)
    else:
        n, o, y, x = sch.get_loops(image.block)
        b, oi = sch.split(o, [None, pair * channels])
        sch.reorder(n, b, y, oi, x)
        sch.vectorize(x)  # gathers: 9% less than scalars of 7x7 pixels
        sch.compute_at(copy, y, preserve_unit_loops=True)
        _, bi, _, x, lane = list(sch.get_loops(copy))[-5:]
        work.done.add(image.name)
    xo, xi = sch.split(x, [None, pixels])
    lo, li = sch.split(lane, [None, wide])
    sch.reorder(xo, lo, bi, xi, li)
    # Of a row in uneven tiles, which pixels there are is known when it is unrolled.
    for loop in (bi, xi) if width % pixels == 0 else (xo, bi, xi):
        sch.unroll(loop)
    vectorize(sch, li, lanes)
    sch.compute_at(block.block, lo, preserve_unit_loops=True)
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    inner = [loops[block.spatial[i].position] for i in (1, 3, 4)]
    even = is_even(block.shape[0] * blocks // pair, work.cpu)
    even = choose(f"{block.name}.blocks_alone", (False, True), even)
    task = parallel_over(sch, [n, b] if even else [n, b, y], block.steps / lanes)
    if image is not None:
        ask_early(sch, y if even else task, image)
    # 7x7 pixels, 512 to 2048 channels, the weight in memory: 318 -> 250 us (Zen 5, Nov 2026).
    split = _asking(sch, block, task, pair, pixels * wide) if even else None
    work.finish.append(accumulate(sch, block, inner, lanes, split))
    work.done |= {block.name, Facts(sch, copy).name}


def _asking(sch: Any, block: Facts, task: Any, pair: int, tile: int) -> Callable[[Any], Any]:
    """Splits a loop over k into runs that ask for a line each of the next task's weight."""
    (weight,) = block.buffers_along(block.spatial[-1])
    tiles = math.prod(block.shape[2:]) // tile
    window = math.prod(axis.extent for axis in block.reduction[1:])

    def split(k: Any) -> Any:
        channels = int(sch.get(k).extent)
        lines = pair * channels * window * block.shape[-1] * 4 // LINE
        steps = min(MOST_STEPS, tiles * channels // lines)
        outer, inner = sch.split(k, [None, divisor(channels, max(1, steps))])
        sch.unroll(inner)
        ask_ahead(sch, task, outer, weight)
        return outer

    return split


def _channel_shape(block: Facts, cpu: Machine) -> tuple[int, int, int]:
    """Blocks, pixels and channels of a tile: two blocks, three, one, or one vector, whichever first
    fits many pixels.
    """
    _, blocks, _, width, channels = block.shape
    shapes = _channel_shapes(blocks, width, channels, cpu)
    return choose(f"{block.name}.tile", shapes[:3], shapes[0])


def _channel_shapes(
    blocks: int, width: int, channels: int, cpu: Machine
) -> list[tuple[int, int, int]]:
    # 13 x 2 and 14 x 2 of 32 registers spill here: 190 GFLOP/s for 14x14 pixels.
    vector, registers = cpu.lanes("float32"), cpu.vector_registers * 3 // 4
    found = []
    for pair, wide in ((2, channels), (3, channels), (1, channels), (1, min(vector, channels))):
        vectors = pair * -(-wide // vector)
        pixels = _even_part(width, max(1, registers // vectors))
        if blocks % pair == 0 and pixels * vectors >= 6:  # enough to hide the latency of the FMA
            found.append((pair, pixels, wide))
    last = 1, _even_part(width, registers), min(vector, channels)
    return list(dict.fromkeys([*found, last]))


def _even_part(extent: int, most: int) -> int:
    """The size of parts of an extent, as few and as even as can be; the last may be smaller."""
    return -(-extent // -(-extent // most))
