"""Schedules over tiles of rows: products in registers, melted into their readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....tvm.types import Block, Loop, Schedule
from ...steps.blocks import Facts, others
from ...steps.loops import Finish, prefetch_image, vectorize, vectorize_copy
from ...steps.parallel import parallel_over
from .compute import Dense
from .forms import ProductPlan
from .melt import melt_rows
from .normal import NormalPlan
from .product import product_at
from .tiles import Loops, tile_rows


def prepare(sch: Schedule, stages: Any, lanes: int) -> None:
    """What no role names: constants are read in place, weights that are none packed first. So are
    the factors of a norm that joined the result, which is stored where its tile is.
    """
    stored = Facts(sch, stages.result).name
    for block in others(sch, stages):
        if block.reduction:  # the sums of a weight of levels
            parallel_over(sch, list(sch.get_loops(block.block))[: len(block.spatial)], block.steps)
        elif block.axes and stored not in {reader.name for reader in block.consumers}:
            vectorize_copy(sch, block, lanes)
        else:
            sch.compute_inline(block.block)


def dense_tiles(
    sch: Schedule, dense: Dense, plan: ProductPlan, split: int = 0
) -> tuple[Loops, list[Finish]]:
    """A dense in register tiles, its result stored from them; -> the loops, and what is to be done
    last.
    """
    loops = tile_rows(sch, dense.outputs, plan)
    finish = product_at(sch, dense.product, loops, plan, split)
    store(sch, dense.result, dense.outputs, loops, plan)
    return loops, finish


def in_parallel(sch: Schedule, tasks: Sequence[Loop], plan: ProductPlan) -> Loop:
    """The tasks, where they are worth a parallel region."""
    task = sch.fuse(*tasks) if len(tasks) > 1 else tasks[0]
    if plan.parallel:
        sch.parallel(task)
    return task


def store(sch: Schedule, result: Block, outputs: Block, loops: Loops, plan: ProductPlan) -> None:
    """Write a tile's real elements from registers; all at the end if rows are numbered through."""
    if plan.rows.numbered_through:
        vectorize_copy(sch, Facts(sch, result), plan.lanes)
        return
    sch.reverse_compute_at(result, loops.tile, preserve_unit_loops=True)
    sch.set_scope(outputs, 0, "local")
    *_, row, column = sch.get_loops(result)
    sch.unroll(row)
    vectorize(sch, column, plan.lanes)


def schedule_dense(sch: Schedule, dense: Dense, plan: ProductPlan) -> None:
    """Register tiles, spread over tasks of rows and panels of columns."""
    prepare(sch, dense, plan.lanes)
    loops, finish = dense_tiles(sch, dense, plan)
    in_parallel(sch, loops.tasks, plan)
    # 40x64x6625, all in memory: 273 us without any prefetch, 248 of weights alone, 236 so (Zen 4).
    if plan.chunk and not plan.rows.numbered_through:
        prefetch_image(sch, loops.tile, Facts(sch, dense.result))
    for last in finish:
        last()


def schedule_normal(sch: Schedule, dense: Dense, plan: NormalPlan) -> None:
    """The same of rows that are normalised first. Where every core has rows of its own, as the
    weight stays in L2, those of a task are normalised in front of its tiles and stay there too.
    """
    assert dense.normal is not None, f"no rows are normalised for {plan}"
    prepare(sch, dense, plan.product.lanes)
    loops, finish = dense_tiles(sch, dense, plan.product)
    task = in_parallel(sch, loops.tasks, plan.product)
    at = task if plan.product.melted else None
    finish += melt_rows(sch, dense.normal.before, dense.normal.result, plan.normal, at)
    for last in finish:
        last()
