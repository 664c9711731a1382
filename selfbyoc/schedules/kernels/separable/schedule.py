"""The schedule of a depthwise convolution and its pointwise ones by blocks of channels.

An image in chunks of rows is one parallel region: a task computes a chunk of the result. Some
vectors of the expanded rows exist at a time, as tiles of registers; the depthwise result of the
chunk stays in L2. An image in one chunk is two regions instead, and has no halo: a task of the
first is some vectors of the depthwise result, of the second a band of some vectors of the result,
so that each core reads its part of the weights only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....language.types import Block, Loop, Schedule
from ...steps.blocks import Facts, divisor
from ...steps.elementwise import width_of
from ...steps.loops import prefetch_image, prefetch_next, start_sums, transpose, vectorize
from ...steps.parallel import LEAST_STEPS, parallel_over
from ..conv.staged import StagedStages
from . import staged
from .compute import Stages
from .plan import SeparablePlan
from .staged import StagedPlan

FEW_ELEMENTS = 16  # of a row of the result, read out of their tiles at a time


def schedule(
    sch: Schedule, stages: Stages | StagedStages, plan: SeparablePlan | StagedPlan
) -> None:
    """By blocks of channels, or stage by stage."""
    if isinstance(plan, StagedPlan):
        assert isinstance(stages, StagedStages)
        staged.schedule(sch, stages, plan)
        return
    assert isinstance(stages, Stages)
    _by_blocks(sch, stages, plan)


def _by_blocks(sch: Schedule, stages: Stages, plan: SeparablePlan) -> None:
    # 1. The result out of tiles; then the depthwise convolution, of a chunk or at first.
    task, *finish = _result(sch, stages, plan)
    if plan.chunked:
        sch.compute_at(stages.windows, task, preserve_unit_loops=True)
    group, last = _windows(sch, stages, plan)
    finish.append(last)
    # 2. What its windows read, some vectors at a time, out of tiles in registers.
    tile = _frame(sch, stages.frame.result, group, plan)
    if stages.frame.sums is not None:
        k, last = _in_registers(sch, stages.frame.sums, tile, plan)
        finish.append(last)
        if not plan.chunked:  # each group's weights are read once; the last cache is 4% too slow
            sums = Facts(sch, stages.frame.sums)
            (weight,) = sums.buffers_along(sums.spatial[-1])
            prefetch_next(sch, group, k, weight)
    if stages.frame.rows is not None:
        _picture(sch, stages.frame.rows, task, plan)
    # 3. What is left: tables of a value for each channel, weights that are no constants.
    for block in (*stages.tables, *stages.weights):
        if block is not None:
            _copy(sch, block, plan.lanes)
    for last in finish:
        last()


def _result(sch: Schedule, stages: Stages, plan: SeparablePlan) -> list[Any]:
    """The result by bands of some vectors of channels, read out of their tiles; -> the loop of
    tasks, and what decomposes the sums.
    """
    result, pixels = Facts(sch, stages.result), plan.sums.pixels
    n, o, y, x = sch.get_loops(result.block)
    chunk, band, row = sch.split(y, [None, pixels.bands, pixels.band])
    v, vi, oi = sch.split(o, [None, plan.sums.vectors, plan.lanes // plan.fold])
    width = plan.lanes if plan.in_squares else _read_at_once(result.shape[3], plan.lanes)
    xo, xi = sch.split(x, [None, width])
    if plan.chunked:
        outer = [n, chunk, v, band] if plan.parts > 1 else [n, chunk, band, v]
    else:
        outer = [n, v, chunk, band]
    # Squares of channels and pixels are transposed in registers (tir/strided_vectors.py).
    sch.reorder(*outer, row, vi, *((xo, oi) if plan.in_squares else (oi, xo)), xi)
    sch.vectorize(xi)
    if stages.rows is not None:
        sch.compute_at(stages.rows, vi, preserve_unit_loops=True)
        lane, pixel = list(sch.get_loops(stages.rows))[-2:]
        transpose(sch, lane, pixel, plan.lanes)
    if stages.parts is None:
        k, finish = _sums(sch, stages.sums, outer[-1], plan)
    else:
        k, finish = _in_parts(sch, stages.sums, stages.parts, outer[-1], plan)
    steps = LEAST_STEPS if plan.parallel else 0
    task = parallel_over(sch, outer[:2] if plan.chunked else outer, steps)
    if plan.prefetches:
        sums = Facts(sch, stages.sums)
        # Folded steps read the windows along the lanes, too.
        *_, weight = sums.buffers_along(sums.spatial[-1])
        prefetch_next(sch, task, k, weight)
    if int(sch.get(xi).extent) >= plan.lanes:  # else a prefetch for each element
        prefetch_image(sch, outer[-1] if plan.chunked else task, Facts(sch, result.block))
    return [task, finish]


def _read_at_once(row: int, lanes: int) -> int:
    """Elements of a row of the result that are read out of their tiles at a time: whole and half
    vectors, or a few. 64x56x56, 3x3, on two cores of Zen 4 AVX-512: 14 at a time 221 us, all 56
    183; of rows of 76 4 at a time 1625 us, 38 1662 (Nov 2026).
    """
    vectors = width_of(row, lanes)
    halves = vectors > 0 and vectors % max(1, lanes // 2) == 0
    return vectors if halves else divisor(row, FEW_ELEMENTS)


def _sums(
    sch: Schedule, sums: Block, at: Loop, plan: SeparablePlan
) -> tuple[Loop, Callable[[], None]]:
    """acc[vectors][pixels][lanes] = 0; for k: acc += ...; tiles = acc: what an iteration of `at`
    reads -> the outer loop over products, and what decomposes the sums.
    """
    copy = sch.cache_write(sums, 0, "local")
    sch.compute_at(copy, at, preserve_unit_loops=True)
    *_, v, tile, pixel, lane = sch.get_loops(copy)
    sch.reorder(tile, v, pixel, lane)
    sch.unroll(v)
    sch.unroll(pixel)
    sch.vectorize(lane)
    sch.compute_at(sums, tile, preserve_unit_loops=True)
    return _products(sch, sums, plan)


def _products(sch: Schedule, sums: Block, plan: SeparablePlan) -> tuple[Loop, Callable[[], None]]:
    *_, v, _, pixel, lane, k = sch.get_loops(sums)
    inner = [pixel, v, lane] if plan.sums.by_pixel else [v, pixel, lane]
    return _accumulate(sch, sums, [k], inner, plan.k[1])


def _in_parts(
    sch: Schedule, sums: Block, parts: Block, at: Loop, plan: SeparablePlan
) -> tuple[Loop, Callable[[], None]]:
    """tiles = 0; for part, tile: acc = 0; for k: acc += ...; tile += acc -> as `_sums`."""
    sch.compute_at(sums, at, preserve_unit_loops=True)
    v, tile, pixel, lane, part = list(sch.get_loops(sums))[-5:]
    sch.reorder(part, tile, v, pixel, lane)
    sch.unroll(v)
    sch.unroll(pixel)
    sch.vectorize(lane)
    sch.set_scope(parts, 0, "local")
    sch.compute_at(parts, tile, preserve_unit_loops=True)
    k, last = _products(sch, parts, plan)

    def finish() -> None:
        last()
        start_sums(sch, sums, part, 2)

    return k, finish


def _windows(sch: Schedule, stages: Stages, plan: SeparablePlan) -> tuple[Loop, Callable[[], None]]:
    """The depthwise convolution in vectors of channels, some windows at a time; -> the loop of
    groups of vectors, and what decomposes its sums.
    """
    n, chunk, v, _, column, lane = list(sch.get_loops(stages.windows))[-6:]
    group, _ = sch.split(v, [None, plan.frame.vectors])
    at, together = sch.split(column, [None, plan.form.together])
    sch.unroll(together)
    sch.vectorize(lane)
    sch.set_scope(stages.taps, 0, "local")
    sch.compute_at(stages.taps, at, preserve_unit_loops=True)
    column, lane, ky, kx = list(sch.get_loops(stages.taps))[-4:]
    # A row of the windows at a time: its weights and what they read stay in registers.
    sch.reorder(ky, kx, column, lane)
    for loop in (kx, column):
        sch.unroll(loop)
    sch.vectorize(lane)
    outer = group if plan.chunked else parallel_over(sch, [n, chunk, group])
    return outer, lambda: start_sums(sch, stages.taps, ky, 1)


def _frame(sch: Schedule, frame: Block, group: Loop, plan: SeparablePlan) -> Loop:
    """What the windows of a group of vectors read, tile by tile; -> the loop around a tile."""
    sch.compute_at(frame, group, preserve_unit_loops=True)
    v, band, tile, pixel, lane = list(sch.get_loops(frame))[-5:]
    if not plan.expands:  # transposed: contiguous reads, strided writes; vectors would gather
        sch.reorder(band, v, tile, lane, pixel)
        transpose(sch, lane, pixel, plan.lanes)
        return band
    sch.reorder(band, tile, v, pixel, lane)
    sch.unroll(v)
    sch.unroll(pixel)
    sch.vectorize(lane)
    return tile


def _in_registers(
    sch: Schedule, sums: Block, at: Loop, plan: SeparablePlan
) -> tuple[Loop, Callable[[], None]]:
    """The sums that a tile of the frame reads; -> the outer loop over their products, and what
    decomposes them.
    """
    sch.set_scope(sums, 0, "local")
    sch.compute_at(sums, at, preserve_unit_loops=True)
    facts = Facts(sch, sums)
    loops = list(sch.get_loops(sums))[-len(facts.axes) :]
    order = (5, 2, 6) if plan.frame.by_pixel else (2, 5, 6)
    tile = [loops[facts.spatial[i].position] for i in order]
    return _accumulate(sch, sums, [loops[a.position] for a in facts.reduction], tile, plan.k[0])


def _picture(sch: Schedule, rows: Block, task: Loop, plan: SeparablePlan) -> None:
    """The rows of the picture that a task reads; of one chunk, by themselves."""
    if not plan.chunked:
        _copy(sch, rows, plan.lanes)
        return
    sch.compute_at(rows, task, preserve_unit_loops=True)
    sch.vectorize(sch.get_loops(rows)[-1])


def _accumulate(
    sch: Schedule, sums: Block, reduction: Sequence[Loop], tile: Sequence[Loop], steps: int
) -> tuple[Loop, Callable[[], None]]:
    """The sums of a tile in registers, the reduction outermost, `steps` of it at addresses that are
    constant; -> its outer loop, and what decomposes it.
    """
    k, *window = reduction
    loops = [*sch.split(k, [None, steps]), *window]
    for loop in loops[-2:] if window else ():  # a window: its borders are constants
        sch.unroll(loop)
    sch.reorder(*loops, *tile)
    for loop in tile[:-1]:
        sch.unroll(loop)
    sch.vectorize(tile[-1])

    return loops[0], lambda: start_sums(sch, sums, loops[0], 2)


def _copy(sch: Schedule, block: Block, lanes: int) -> None:
    """An elementwise block by itself: outer loops in parallel, the last one in vectors."""
    *before, last = sch.get_loops(block)
    extent = int(sch.get(last).extent)
    outer, inner = sch.split(last, [None, divisor(extent, 4 * lanes)])
    vectorize(sch, inner, lanes)
    parallel_over(sch, [*before, outer], Facts(sch, block).size)
