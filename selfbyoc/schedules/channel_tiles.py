"""Register tiles of direct convolutions whose lanes are channels (channel_lanes.py)."""

from __future__ import annotations

from .blocks import Facts, divisor
from .direct_tiles import Work, accumulate, image_of
from .machine import Machine
from .steps import parallel_over, vectorize


def tile_channels(work: Work, block: Facts) -> None:
    """for row of pixels, one or two blocks of channels: acc[pixels][channels] = 0; for k: acc +=
    ...; store.
    """
    sch, lanes, image = work.sch, work.cpu.lanes(block.dtype), image_of(block)
    _, blocks, _, width, channels = block.shape
    pair, pixels, wide = _channel_shape(blocks, width, channels, work.cpu)
    copy = sch.cache_write(block.block, 0, "local")
    if image is None:
        n, b, y, x, lane = sch.get_loops(copy)
        b, bi = sch.split(b, [None, pair])
        sch.reorder(n, b, y, bi)
        outer = [n, b, y]
    else:
        n, o, y, x = sch.get_loops(image.block)
        b, oi = sch.split(o, [None, pair * channels])
        sch.reorder(n, b, y, oi, x)
        outer = [n, b, y]
        sch.vectorize(x)  # gathers: 9% less than scalars of 7x7 pixels
        sch.compute_at(copy, y, preserve_unit_loops=True)
        _, bi, _, x, lane = list(sch.get_loops(copy))[-5:]
        work.done.add(image.name)
    xo, xi = sch.split(x, [None, pixels])
    lo, li = sch.split(lane, [None, wide])
    sch.reorder(xo, lo, bi, xi, li)
    sch.unroll(bi)
    sch.unroll(xi)
    vectorize(sch, li, lanes)
    sch.compute_at(block.block, lo, preserve_unit_loops=True)
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    inner = [loops[block.spatial[i].position] for i in (1, 3, 4)]
    work.finish.append(accumulate(sch, block, inner, lanes))
    parallel_over(sch, outer, block.steps / lanes)
    work.done |= {block.name, Facts(sch, copy).name}


def _channel_shape(blocks: int, width: int, channels: int, cpu: Machine) -> tuple[int, int, int]:
    """Blocks, pixels and channels of a tile: two blocks, one, or one vector, whichever first fits
    many pixels.
    """
    # 13 x 2 and 14 x 2 of 32 registers spill here: 190 GFLOP/s for 14x14 pixels.
    vector, registers = cpu.lanes("float32"), cpu.vector_registers * 3 // 4
    for pair, wide in ((2, channels), (1, channels), (1, min(vector, channels))):
        vectors = pair * -(-wide // vector)
        pixels = divisor(width, max(1, registers // vectors))
        if blocks % pair == 0 and pixels * vectors >= 6:  # enough to hide the latency of the FMA
            return pair, pixels, wide
    return 1, divisor(width, registers), min(vector, channels)
