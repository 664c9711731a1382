"""The schedule of a depthwise convolution and its pointwise ones by blocks of channels.

An image in chunks of rows is one parallel region: a task computes a chunk of the result. Some
blocks of the expanded rows exist at a time, row by row as tiles of registers; the depthwise result
of the chunk stays in L2. An image in one chunk is two regions instead, and has no halo: a task of
the first is some blocks of the depthwise result, of the second a row of some blocks of the result,
so that each core reads its part of the weights only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....language.decisions import choose
from ....machine import Machine, machine
from ...steps.blocks import Facts, divisor, facts
from ...steps.candidates import divisors, next_to
from ...steps.loops import ask_ahead, parallel_over, vectorize
from ...steps.reductions import stages
from ..conv import direct_schedule
from ..conv.direct_tiles import Work
from .form import EXPANDED
from .layers import LANES

TAPS_UNROLLED = 8  # neighbouring windows, which share what they read


@dataclass(frozen=True)
class Shape:
    """A register tile: blocks of channels, pixels, and the channels of a block."""

    blocks: int
    pixels: int
    channels: int


def schedule(sch: Any, ops: Any, target: Any) -> None:
    """By blocks of channels, if the compute is; else stage by stage."""
    hidden = next((b for b in facts(sch) if b.name.endswith("_lanes")), None)
    if hidden is None:
        direct_schedule.schedule(sch, ops, target)
        return
    work = Work(sch, machine(target))
    (image,) = (b for b in hidden.producers if b.name.endswith("_framed"))
    expanded = [b for b in image.producers if b.name.endswith("_sums")]
    (sums,) = hidden.consumers
    chunked = hidden.shape[1] > 1
    # 1. The result out of tiles of a row; then the depthwise convolution, of a chunk or at first.
    channels = ops.of("conv2d")[-1].inputs[1][0][1]
    task = _result(work, sums, hidden, channels // sums.reduction[0].extent, chunked)
    if chunked:
        sch.compute_at(hidden.block, task, preserve_unit_loops=True)
    shapes = [_tile_shape(b, b.shape[2], work.cpu) for b in expanded]
    group = _windows(work, hidden, shapes[0].blocks if shapes else 1, chunked)
    # 2. What its windows read, some blocks at a time, out of tiles in registers.
    tile = _frame(work, image, group, shapes[0] if shapes else None)
    for block in expanded:
        k = _in_registers(work, block, tile)
        for rows in block.producers if chunked else ():
            _rows(work, rows, task)
        if not chunked:  # each group's weights are read once; the last cache is some 4% too slow
            (weight,) = block.buffers_along(block.spatial[-1])
            ask_ahead(sch, group, k, weight)
    # 3. What is left: tables of a value for each channel, weights that are no constants.
    stages(sch, [b for b in facts(sch) if b.name not in work.done], work.cpu, work.finish)
    for last in work.finish:
        last()


def _tile_shape(block: Facts, blocks: int, cpu: Machine) -> Shape:
    shapes = tile_shapes(blocks, block.shape[5], cpu)
    known = [(s.blocks, s.pixels, s.channels) for s in shapes[:3]]
    return Shape(*choose(f"{block.name}.tile", known, known[0]))


def tile_shapes(blocks: int, pixels: int, cpu: Machine) -> list[Shape]:
    """Those with the fewest loads for each product first, if products enough hide the FMA's
    latency.
    """
    vector = cpu.lanes("float32")
    # 14 x 2 of 32 registers are slower than 7 x 2: LLVM spills (inverted residual of 24x56x56, one
    # Zen 5 core's project part: 59% of the time, then 40%).
    # SSE has no products of three operands: 12 sums and their copies spill, 8 do not.
    sse = (cpu.vector_bytes, cpu.vector_registers) == (16, 16)
    most = cpu.vector_registers // 2 if sse else cpu.vector_registers * 3 // 4
    shapes = [
        Shape(b, p, w)
        for b in range(1, EXPANDED + 1)
        for w in {LANES, min(LANES, 2 * vector), min(LANES, vector)}
        for p in range(1, pixels + 1)
        if blocks % b == 0 and pixels % p == 0 and b * p * -(-w // vector) <= most
    ]

    def cost(s: Shape) -> tuple[float, int]:
        vectors = s.blocks * -(-s.channels // vector)
        products, loads = s.pixels * vectors, s.pixels + vectors
        return max(products, loads, 8) / products + loads / products / 4, -products

    return sorted(shapes, key=cost)


def _result(work: Work, sums: Facts, hidden: Facts, fold: int, chunked: bool) -> Any:
    """The result by rows of some blocks of channels, read out of their tiles; -> the loop of
    tasks.
    """
    sch, (result,) = work.sch, sums.consumers
    shape = _tile_shape(sums, sums.shape[3], work.cpu)
    n, o, y, x = sch.get_loops(result.block)
    chunk, row = sch.split(y, [None, hidden.shape[3]])
    b, oi = sch.split(o, [None, min(result.shape[1], shape.blocks * LANES // fold)])
    xo, xi = sch.split(x, [None, divisor(result.shape[3], LANES)])
    outer = [n, chunk, row, b] if chunked else [n, b, chunk, row]
    sch.reorder(*outer, oi, xo, xi)
    sch.vectorize(xi)
    _tiles(work, sums, outer[-1], shape, fold)
    work.done.add(result.name)
    steps = sums.steps / work.cpu.lanes("float32")
    return parallel_over(sch, outer[:2] if chunked else outer, steps)


def _windows(work: Work, hidden: Facts, blocks: int, chunked: bool) -> Any:
    """The depthwise convolution in vectors of channels; -> the loop of groups of blocks."""
    sch = work.sch
    n, chunk, b, _, _, i, lane = list(sch.get_loops(hidden.block))[-7:]
    group, _ = sch.split(b, [None, blocks])
    usual = divisor(hidden.shape[5], TAPS_UNROLLED)
    pixels = choose(f"{hidden.name}.pixels", next_to(divisors(hidden.shape[5], 16), usual), usual)
    io, ii = sch.split(i, [None, pixels])
    lo, li = sch.split(lane, [None, min(LANES, work.cpu.lanes("float32"))])
    # One vector of each window at a time, for 16 registers: AVX2 304 us, 330 with both in one tile.
    sch.reorder(io, lo, ii, li)
    sch.unroll(ii)
    sch.vectorize(li)
    work.done.add(hidden.name)
    if chunked:
        return group
    return parallel_over(sch, [n, chunk, group])


def _frame(work: Work, image: Facts, group: Any, shape: Shape | None) -> Any:
    """What the windows of a group of blocks read, row by row; -> the loop around a tile."""
    sch = work.sch
    sch.compute_at(image.block, group, preserve_unit_loops=True)
    b, row, column, lane = list(sch.get_loops(image.block))[-4:]
    work.done.add(image.name)
    if shape is None:  # turned over: contiguous reads, strided writes; vectors would gather
        sch.reorder(row, b, lane, column)
        return row
    po, pi = sch.split(column, [None, shape.pixels])
    lo, li = sch.split(lane, [None, shape.channels])
    sch.reorder(row, po, lo, b, pi, li)
    sch.unroll(b)
    sch.unroll(pi)
    vectorize(sch, li, work.cpu.lanes("float32"))
    return lo


def _in_registers(work: Work, block: Facts, at: Any) -> Any:
    """The sums that a tile of the frame reads; -> the outer loop over their products."""
    sch = work.sch
    sch.set_scope(block.block, 0, "local")
    sch.compute_at(block.block, at, preserve_unit_loops=True)
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    b, pixel, lane = (loops[block.spatial[i].position] for i in (2, 5, 6))
    reduction = [loops[axis.position] for axis in block.reduction]
    work.done.add(block.name)
    return _accumulate(work, block, reduction, [b, pixel, lane], LANES)


def _rows(work: Work, block: Facts, task: Any) -> None:
    """The rows of the picture that a task reads."""
    work.sch.compute_at(block.block, task, preserve_unit_loops=True)
    vectorize(work.sch, work.sch.get_loops(block.block)[-1], work.cpu.lanes(block.dtype))
    work.done.add(block.name)


def _tiles(work: Work, block: Facts, at: Any, shape: Shape, fold: int = 1) -> None:
    """acc[blocks][pixels][channels] = 0; for k: acc += ...; tiles = acc: what an iteration of `at`
    reads.
    """
    sch = work.sch
    copy = sch.cache_write(block.block, 0, "local")
    sch.compute_at(copy, at, preserve_unit_loops=True)
    # [n, chunk, b, row, tile, pixel, lane], or with the row before the blocks
    *_, first, second, tile, pixel, lane = sch.get_loops(copy)
    by_row = "b" not in str(block.spatial[2].var)
    b, row = (second, first) if by_row else (first, second)
    po, pi = sch.split(pixel, [None, shape.pixels])
    lo, li = sch.split(lane, [None, shape.channels])
    sch.reorder(row, tile, po, lo, b, pi, li)
    sch.unroll(b)
    sch.unroll(pi)
    vectorize(sch, li, work.cpu.lanes(block.dtype))
    sch.compute_at(block.block, lo, preserve_unit_loops=True)
    *_, first, second, _, pixel, lane, k = sch.get_loops(block.block)
    inner = [second if by_row else first, pixel, lane]
    _accumulate(work, block, [k], inner, LANES // fold)
    work.done |= {block.name, Facts(sch, copy).name}


def _accumulate(work: Work, block: Facts, reduction: list[Any], tile: list[Any], steps: int) -> Any:
    """The sums of a tile in registers, the reduction outermost; `steps` read one block; -> its
    outer loop.
    """
    sch, lanes = work.sch, work.cpu.lanes(block.dtype)
    if block.reduction[0].extent % steps == 0:  # a block of channels: its address is then constant
        reduction = [*sch.split(reduction[0], [None, steps]), *reduction[1:]]
    for loop in reduction[-2:] if len(reduction) > 2 else ():  # a window: its borders are constants
        sch.unroll(loop)
    sch.reorder(*reduction, *tile)
    for loop in tile[:-1]:
        sch.unroll(loop)
    vectorize(sch, tile[-1], lanes)

    def finish() -> None:
        init = sch.decompose_reduction(block.block, reduction[0])
        *outer, lane = sch.get_loops(init)
        sch.vectorize(lane)
        for loop in outer[-2:]:
            sch.unroll(loop)

    work.finish.append(finish)
    return reduction[0]


CPU = {"llvm": schedule, "c": schedule}
