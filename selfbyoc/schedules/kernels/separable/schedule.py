"""The schedule of a depthwise convolution and its pointwise ones by blocks of channels.

An image in chunks of rows is one parallel region: a task computes a chunk of the result. Some
vectors of the expanded rows exist at a time, as tiles of registers; the depthwise result of the
chunk stays in L2. An image in one chunk is two regions instead, and has no halo: a task of the
first is some vectors of the depthwise result, of the second a band of some vectors of the result,
so that each core reads its part of the weights only.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....tvm.types import Block, Loop, Schedule
from ...steps.blocks import Facts, divisor
from ...steps.elementwise import width_of
from ...steps.loops import Finish, prefetch_image, prefetch_next, start_sums, transpose, vectorize
from ...steps.parallel import LEAST_STEPS, parallel_over
from ...steps.registers import out_of_registers, sum_in_tile, unroll_tile, weight_of
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
            prefetch_next(sch, group, k, weight_of(Facts(sch, stages.frame.sums)))
    if stages.frame.rows is not None:
        _picture(sch, stages.frame.rows, task, plan)
    # 3. What is left: tables of a value for each channel, weights that are no constants.
    for block in (*stages.tables, *stages.weights):
        if block is not None:
            _copy(sch, block, plan.lanes)
    for last in finish:
        last()


def _result(sch: Schedule, stages: Stages, plan: SeparablePlan) -> list[Loop]:
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
    k, finish = _sums(sch, stages, outer[-1], plan)
    steps = LEAST_STEPS if plan.parallel else 0
    task = parallel_over(sch, outer[:2] if plan.chunked else outer, steps)
    if plan.prefetches:
        prefetch_next(sch, task, k, weight_of(Facts(sch, stages.sums)))
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


def _sums(sch: Schedule, stages: Stages, at: Loop, plan: SeparablePlan) -> tuple[Loop, Finish]:
    """for tile: acc[vectors][pixels][lanes] = 0; for k: acc += ...; tiles = acc, or += of a part:
    what an iteration of `at` reads -> the outer loop over products, and what decomposes the sums.
    """
    written, added = out_of_registers(sch, stages.sums, stages.parts)
    sch.compute_at(written, at, preserve_unit_loops=True)
    loops = list(sch.get_loops(written))
    v, tile, pixel, lane, *part = loops[-4 - (stages.parts is not None) :]
    unroll_tile(sch, [*part, tile], [v, pixel, lane], plan.lanes)
    sch.compute_at(added, tile, preserve_unit_loops=True)
    *_, v, _, pixel, lane, k = sch.get_loops(added)
    inner = [pixel, v, lane] if plan.sums.by_pixel else [v, pixel, lane]
    k, last = _accumulate(sch, added, [k], inner, plan.k[1])

    def finish() -> None:
        last()
        for loop in part:
            start_sums(sch, written, loop, 2)

    return k, finish


def _windows(sch: Schedule, stages: Stages, plan: SeparablePlan) -> tuple[Loop, Finish]:
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
    finish = sum_in_tile(sch, stages.taps, [ky, kx], [column, lane], plan.lanes)
    sch.unroll(kx)
    return group if plan.chunked else parallel_over(sch, [n, chunk, group]), finish


def _frame(sch: Schedule, frame: Block, group: Loop, plan: SeparablePlan) -> Loop:
    """What the windows of a group of vectors read, tile by tile; -> the loop around a tile."""
    sch.compute_at(frame, group, preserve_unit_loops=True)
    v, band, tile, pixel, lane = list(sch.get_loops(frame))[-5:]
    if not plan.expands:  # transposed: contiguous reads, strided writes; vectors would gather
        sch.reorder(band, v, tile, lane, pixel)
        transpose(sch, lane, pixel, plan.lanes)
        return band
    unroll_tile(sch, [band, tile], [v, pixel, lane], plan.lanes)
    return tile


def _in_registers(sch: Schedule, sums: Block, at: Loop, plan: SeparablePlan) -> tuple[Loop, Finish]:
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
    """The rows of the picture, or of words, that a task reads; of one chunk, by themselves."""
    if not plan.chunked:
        _copy(sch, rows, plan.lanes)
        return
    sch.compute_at(rows, task, preserve_unit_loops=True)
    _in_vectors(sch, sch.get_loops(rows)[-1], plan.lanes)


def _accumulate(
    sch: Schedule, sums: Block, reduction: Sequence[Loop], tile: Sequence[Loop], steps: int
) -> tuple[Loop, Finish]:
    """The sums of a tile in registers, the reduction outermost, `steps` of it at addresses that are
    constant; -> its outer loop, and what decomposes it.
    """
    k, *window = reduction
    loops = [*sch.split(k, [None, steps]), *window]
    for loop in loops[-2:] if window else ():  # a window: its borders are constants
        sch.unroll(loop)
    lanes = int(sch.get(tile[-1]).extent)
    return loops[0], sum_in_tile(sch, sums, loops, tile, lanes)


def _copy(sch: Schedule, block: Block, lanes: int) -> None:
    """An elementwise block by itself: outer loops in parallel, the last one in vectors."""
    *before, last = sch.get_loops(block)
    outer = _in_vectors(sch, last, lanes)
    parallel_over(sch, [*before, outer], Facts(sch, block).size)


def _in_vectors(sch: Schedule, loop: Loop, lanes: int) -> Loop:
    """A row in vectors, some at a time; -> the loop around them."""
    outer, inner = sch.split(loop, [None, divisor(int(sch.get(loop).extent), 4 * lanes)])
    vectorize(sch, inner, lanes)
    return outer
