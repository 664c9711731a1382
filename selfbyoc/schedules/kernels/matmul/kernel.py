"""The kernel of a product of matrices that are both computed, and its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....language.kernel import Kernel
from ....tvm.types import Loop, Schedule
from ...steps.blocks import Facts, others
from ...steps.loops import start_sums, vectorize
from ...steps.parallel import parallel_over
from ...steps.registers import unroll_tile
from .compute import MatmulStages, batch_matmul
from .plan import MatmulPlan, plan


def schedule(sch: Schedule, stages: Mapping[str, MatmulStages], plan: MatmulPlan) -> None:
    """for product, in parallel: its panels; for panel: for tile: acc = 0; for k: acc += ...; the
    tile's elements of the result. Parts of the rows are tasks where products are too few.
    """
    product(sch, next(iter(stages.values())), plan, others(sch, stages))


def product(sch: Schedule, found: MatmulStages, plan: MatmulPlan, joined: Sequence[Facts]) -> Loop:
    """A product, and `joined`, the blocks that no role names; -> the loop over its tasks."""
    lead = len(plan.batch)
    for block in joined:  # what joined the result reads, such as a bias of other axes
        sch.compute_inline(block.block)
    *batch, tile, panel, row, column, k = sch.get_loops(found.sums)
    group, tile = sch.split(tile, [plan.groups, None])
    unrolled = unroll_tile(sch, [*batch, group, panel, tile, k], [row, column], plan.vector)
    sch.set_scope(found.sums, 0, "local")
    sch.reverse_compute_at(found.result, tile, preserve_unit_loops=True)
    _stored(sch, found, plan)
    task = parallel_over(sch, [*batch, group], plan.steps)
    if found.panels is not None:
        _lay_out(sch, found, plan, task if plan.groups == 1 and lead else None)
    start_sums(sch, found.sums, k, unrolled)
    return task


def _stored(sch: Schedule, found: MatmulStages, plan: MatmulPlan) -> None:
    """A tile of the result, in vectors."""
    *_, row, column = sch.get_loops(found.result)
    sch.unroll(row)
    vectorize(sch, column, plan.vector)


def _lay_out(sch: Schedule, found: MatmulStages, plan: MatmulPlan, task: Loop | None) -> None:
    """The panels of a task, or of all: rows of a panel are written together."""
    if task is not None:
        sch.compute_at(found.panels, task, preserve_unit_loops=True)
        return
    *around, _ = sch.get_loops(found.panels)
    parallel_over(sch, around[:-1], Facts(sch, found.panels).size)


MATMUL = Kernel(plan, {"batch_matmul": batch_matmul}, schedule)
