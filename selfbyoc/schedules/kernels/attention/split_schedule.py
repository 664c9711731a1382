"""The schedule of attention over blocks of keys: all stages of a block in turn, blocks in parallel;
then what they made is added up, queries in parallel.
"""

from __future__ import annotations

from ....tvm.types import Block, Loop, Schedule
from ...steps.loops import Finish, prefetch_next, vectorize
from ...steps.registers import unroll_tile
from .few import sums_in_vectors
from .in_tiles import down_the_lanes, innermost_serial, product_in_tile, sums_of_tile
from .split import SplitStages, Together
from .split_plan import SplitPlan


def schedule_split(sch: Schedule, stages: SplitStages, plan: SplitPlan) -> None:
    """for (batch, block of keys) in parallel: scores, peak, power, total, weighted; for (batch,
    query) in parallel: the sum over blocks.
    """
    # 1. All stages of a block of keys are one task, from its scores on.
    ndim = len(plan.shape.batch)
    outer = list(sch.get_loops(stages.scores)[: ndim + 1])
    by_depth = plan.depth_lanes > 1
    if "k" in plan.shape.interleaved:  # all heads of some keys lie together
        outer[1:] = reversed(outer[1:])
        sch.reorder(*outer)
        outer = outer[:2] if by_depth else outer
    task = sch.fuse(*outer)
    finish = (_by_depth if by_depth else _by_lanes)(sch, stages, plan, task)
    # 2. The blocks of a query are added up by one task.
    together, last = _together(sch, stages.together, plan)
    if plan.parallel:
        sch.parallel(task)
        sch.parallel(together)
    for each in (*finish, *last):
        each()


def _by_lanes(sch: Schedule, stages: SplitStages, plan: SplitPlan, task: Loop) -> list[Finish]:
    """A query is a lane."""
    tiles, tile = _score_tiles(sch, stages.scores, plan)
    finish = [
        product_in_tile(sch, stages.products, tile, plan.scores, plan.depth_steps, plan.narrow)
    ]
    assert stages.queries is not None, "they are packed"
    sch.compute_at(stages.queries, task, preserve_unit_loops=True)
    vectorize(sch, sch.get_loops(stages.queries)[-1], plan.narrow)
    finish.append(down_the_lanes(sch, stages.peak, tile, tiles, plan.narrow))
    _below(sch, stages.peaks, task, plan.narrow)
    _below(sch, stages.power, task, plan.narrow)
    key = sch.get_loops(stages.power)[1]
    finish.append(down_the_lanes(sch, stages.total, key, key, plan.narrow))
    _below(sch, stages.totals, task, plan.narrow)
    finish += [_weighted(sch, stages, plan, task)]
    # Rows of tiles are streams that no prefetcher of the hardware follows: 7 queries of 2 heads
    # that meet 2000 keys from memory take 161 us without, 95 so, and 58 with keys in L2 (Zen 4).
    for block, name in ((stages.products, "k"), (stages.weighted, "v")):
        prefetch_next(sch, task, innermost_serial(sch, block), name)
    return finish


def _by_depth(sch: Schedule, stages: SplitStages, plan: SplitPlan, task: Loop) -> list[Finish]:
    """Lanes are of the depth, then of keys; query by query. Where the heads of a key lie together,
    a task has all of them, and reads keys and values from end to end: apart, nothing prefetches
    them (14 heads, from memory: 0.5 of what NumPy reads, so 0.8 to 0.9; one core of Zen 4).
    """
    _, *heads, query, keys = sch.get_loops(stages.scores)
    vectorize(sch, keys, plan.vector)
    assert stages.partial is not None, "lanes are of the depth"
    sch.compute_at(stages.products, task if heads else query, preserve_unit_loops=True)
    *_, key, lane = sch.get_loops(stages.products)
    sch.unroll(lane)
    if heads:
        _, *rows, _, _ = sch.get_loops(stages.products)
        sch.reorder(key, *rows)
        key = rows[-1]
    sch.compute_at(stages.partial, key, preserve_unit_loops=True)
    finish = [sums_in_vectors(sch, stages.partial, plan.vector)]
    finish.append(_row(sch, stages.peak_lanes, stages.peak, query, plan))
    for block in (stages.peaks, stages.power):
        _below(sch, block, query, plan.vector)
    finish.append(_row(sch, stages.total_lanes, stages.total, query, plan))
    _below(sch, stages.totals, query, plan.vector)
    return [*finish, _weighted(sch, stages, plan, task if heads else query)]


def _row(sch: Schedule, partial: Block | None, whole: Block, at: Loop, plan: SplitPlan) -> Finish:
    """Partial results of a row in vectors, then the one result of them."""
    assert partial is not None, "a row is reduced in lanes"
    sch.reverse_compute_at(partial, at, preserve_unit_loops=True)
    finish = sums_in_vectors(sch, partial, plan.vector)
    sch.reverse_compute_at(whole, at, preserve_unit_loops=True)
    sch.unroll(sch.get_loops(whole)[-1])
    return finish


def _weighted(sch: Schedule, stages: SplitStages, plan: SplitPlan, at: Loop) -> Finish:
    """The second product in tiles of queries, each of which is stored."""
    tile, lanes = plan.weighted, plan.columns
    sch.reverse_compute_at(stages.weighted, at, preserve_unit_loops=True)
    *outer, rows, columns, keys = sch.get_loops(stages.weighted)
    group, row = sch.split(rows, [None, tile.rows])
    panel, column = sch.split(columns, [None, tile.vectors * lanes])
    sch.reorder(panel, group, row, column, keys)
    finish = sums_of_tile(sch, stages.weighted, tile, plan.key_steps, lanes)
    of_all_heads = plan.depth_lanes > 1 and "k" in plan.shape.interleaved
    if of_all_heads:  # some keys of each head, then the next ones
        steps = sch.get_loops(stages.weighted)[len(outer) + 2]
        sch.reorder(steps, *outer[1:], panel, group)
    sch.reverse_compute_at(stages.sums, at if of_all_heads else group, preserve_unit_loops=True)
    *_, row, column = sch.get_loops(stages.sums)
    sch.unroll(row)
    vectorize(sch, column, lanes)
    return finish


def _together(sch: Schedule, stages: Together, plan: SplitPlan) -> tuple[Loop, list[Finish]]:
    """The sums over blocks of keys -> the loop over queries."""
    *outer, column = sch.get_loops(stages.result)
    task = sch.fuse(*outer)
    vectorize(sch, column, plan.columns)
    sch.compute_at(stages.normalised, task, preserve_unit_loops=True)
    vectorize(sch, sch.get_loops(stages.normalised)[-1], plan.columns)
    sch.compute_at(stages.combined, task, preserve_unit_loops=True)
    finish = [sums_in_vectors(sch, stages.combined, plan.columns)]
    for block in (stages.inverse, stages.total, stages.factor, stages.whole):
        sch.compute_at(block, task, preserve_unit_loops=True)
    return task, finish


def _below(sch: Schedule, block: Block, at: Loop, lanes: int) -> None:
    """After what it reads, in vectors."""
    sch.reverse_compute_at(block, at, preserve_unit_loops=True)
    vectorize(sch, sch.get_loops(block)[-1], lanes)


def _score_tiles(sch: Schedule, scores: Block, plan: SplitPlan) -> tuple[Loop, Loop]:
    """Tiles of keys; -> the loop over keys and the loop of tiles."""
    *_, keys, lanes = sch.get_loops(scores)
    tile, row = sch.split(keys, [None, plan.scores.rows])
    group, lanes = sch.split(lanes, [None, plan.scores.vectors * plan.narrow])
    unroll_tile(sch, [tile, group], [row, lanes], plan.narrow)
    return tile, group
