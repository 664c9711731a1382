"""The schedule of attention: all stages of a block of queries in turn, blocks in parallel."""

from __future__ import annotations

from ....tir.cut_loops import cut_by
from ....tvm.own_ops import PAIRS
from ....tvm.types import Block, Loop, Schedule
from ...steps.blocks import others, stored_at_once
from ...steps.loops import Finish, start_sums, vectorize, vectorize_row
from ...steps.registers import unroll_tile
from .compute import AttentionStages, BlockStages
from .few import FewStages, schedule_few
from .forms import BlockPlan, FewPlan
from .in_tiles import down_the_lanes, innermost_serial, product_in_tile
from .mask_schedule import schedule_masks
from .plan import AttentionPlan
from .split import SplitStages
from .split_plan import SplitPlan
from .split_schedule import schedule_split


def schedule(sch: Schedule, stages: AttentionStages, plan: AttentionPlan) -> None:
    """for (batch, block of queries) in parallel: queries, scores, peak, power, total; result."""
    inline_others(sch, stages)
    if isinstance(stages, FewStages):
        assert isinstance(plan, FewPlan)
        return schedule_few(sch, stages, plan)
    if isinstance(stages, SplitStages):
        assert isinstance(plan, SplitPlan)
        return schedule_split(sch, stages, plan)
    assert isinstance(plan, BlockPlan)
    # 1. The result in tiles of queries; one block of queries is one task.
    task, tile = _result_tiles(sch, stages, plan)
    finish = [
        product_in_tile(sch, stages.weighted, tile, plan.weighted, plan.key_steps, plan.vector)
    ]
    # 2. Everything before it, for the same block of queries: the scores stay in L1 or L2.
    sums = (stages.inverse, stages.total, stages.partial)
    # A level needs the whole sum; what is rounded alone does not, and is made beside the powers.
    of_levels = plan.words == PAIRS
    before = (stages.words, *sums) if of_levels else (*sums, stages.words)
    for block in filter(None, (*before, stages.power, stages.peak, stages.scores)):
        sch.compute_at(block, task, preserve_unit_loops=True)
    tiles, tile = _score_tiles(sch, stages.scores, plan)
    finish.append(
        product_in_tile(sch, stages.products, tile, plan.scores, plan.depth_steps, plan.vector)
    )
    sch.compute_at(stages.queries, task, preserve_unit_loops=True)
    finish.append(down_the_lanes(sch, stages.peak, tile, tiles, plan.vector))
    finish += _sums(sch, stages, plan)
    for block in filter(None, (stages.queries, stages.power, stages.inverse, stages.words)):
        _one_vector(sch, block, plan)
    # 3. Tasks in parallel; what had to be packed is so before.
    if plan.parallel:
        sch.parallel(task)
    if stages.keys is not None:
        _pack(sch, stages.keys, plan, plan.rows_in_vectors)
    if stages.values is not None:
        _pack(sch, stages.values, plan, True)
    if stages.masks is not None:
        finish += schedule_masks(sch, stages.masks, task, plan)
        cut_by(sch, tiles, plan.scores.rows)
        cut_by(sch, innermost_serial(sch, stages.weighted), plan.key_steps * plan.word)
    for last in finish:
        last()


def _sums(sch: Schedule, stages: BlockStages, plan: BlockPlan) -> list[Finish]:
    """The sum of the powers is taken where these are made, or in parts after them."""
    keys = key = sch.get_loops(stages.power)[-2]
    beside = None if plan.words == PAIRS else stages.words
    if beside is not None:
        keys, key = sch.split(key, [None, plan.word])
    if stages.masks is not None:
        cut_by(sch, keys, 1 if beside is None else plan.word)
    if stages.partial is None:
        finish = [down_the_lanes(sch, stages.total, key, keys, plan.vector)]
    else:
        parts = ((stages.total, 0), (stages.partial, 1))
        finish = [_sum_of_powers(sch, block, axes, plan) for block, axes in parts]
    if beside is not None:
        sch.reverse_compute_at(beside, keys, preserve_unit_loops=True)
    return finish


def inline_others(sch: Schedule, stages: AttentionStages) -> None:
    """Constants, and whatever reshapes the arguments, are read in place."""
    for block in others(sch, stages):
        sch.compute_inline(block.block)


def _result_tiles(sch: Schedule, stages: BlockStages, plan: BlockPlan) -> tuple[Loop, Loop]:
    """Tile `normalised`, store each tile's real elements; -> the loops of tasks and of tiles."""
    *outer, tiles, row, column = sch.get_loops(stages.normalised)
    block, tile = sch.split(tiles, [None, plan.lanes // plan.weighted.rows])
    panel, lanes = sch.split(column, [None, plan.weighted.vectors * plan.vector])
    # A panel of columns of the values serves all tiles of the block while it is in L1.
    inside = tile if plan.panels_outside else panel
    sch.reorder(*outer, block, *((panel, tile) if plan.panels_outside else (tile, panel)), row)
    task = sch.fuse(*outer, block)
    sch.unroll(row)
    vectorize(sch, lanes, plan.vector)
    sch.reverse_compute_at(stages.result, inside, preserve_unit_loops=True)
    sch.set_scope(stages.normalised, 0, "local")
    loops = list(sch.get_loops(stages.result))
    sch.unroll(loops[-3 if "result" in plan.shape.interleaved else -2])
    vectorize(sch, loops[-1], plan.vector)
    return task, inside


def _score_tiles(sch: Schedule, scores: Block, plan: BlockPlan) -> tuple[Loop, Loop]:
    """Tiles of keys; -> the loop over keys and the loop of tiles."""
    *_, keys, lanes = sch.get_loops(scores)
    tile, row = sch.split(keys, [None, plan.scores.rows])
    group, lanes = sch.split(lanes, [None, plan.scores.vectors * plan.vector])
    unroll_tile(sch, [tile, group], [row, lanes], plan.vector)
    return tile, group


def _one_vector(sch: Schedule, block: Block, plan: BlockPlan) -> None:
    """The lanes of a block as machine vectors, one after the other."""
    vectorize(sch, sch.get_loops(block)[-1], plan.vector)


def _sum_of_powers(sch: Schedule, block: Block, axes: int, plan: BlockPlan) -> Finish:
    """Of each lane for itself, in registers: vector by vector, of so many further axes at once."""
    sch.set_scope(block, 0, "local")
    *rest, lanes, power = sch.get_loops(block)
    parts = rest[len(rest) - axes :]
    vector, lane = sch.split(lanes, [None, plan.vector])
    sch.reorder(vector, power, *parts, lane)
    for loop in parts:
        sch.unroll(loop)
    sch.vectorize(lane)

    return lambda: start_sums(sch, block, power, axes)


def _pack(sch: Schedule, packed: Block, plan: BlockPlan, in_vectors: bool) -> None:
    """Rows in parallel, columns in vectors."""
    *rows, column = sch.get_loops(packed)
    if in_vectors and plan.words == PAIRS:
        width = stored_at_once(int(sch.get(column).extent), plan.vector)
        vectorize_row(sch, column, width, plan.vector)
    elif in_vectors:
        vectorize(sch, column, plan.vector)
    if plan.parallel:
        sch.parallel(sch.fuse(*rows))
