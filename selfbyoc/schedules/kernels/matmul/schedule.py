"""The schedule of a product of matrices that are both computed: of floats, or of words."""

from __future__ import annotations

from collections.abc import Sequence

from ....language.decisions import is_symbolic
from ....tvm.types import Loop, Schedule
from ...steps.blocks import Facts, others, stored_at_once
from ...steps.loops import start_sums, vectorize, vectorize_copy, vectorize_row
from ...steps.parallel import parallel_over
from ...steps.registers import unroll_tile
from .compute import MatmulStages
from .plan import MatmulPlan


def of_words(sch: Schedule, stages: MatmulStages, plan: MatmulPlan, in_vectors: bool) -> None:
    """As one of floats; the words of both sides are made by the task that reads them."""
    task = product(sch, stages, plan, others(sch, stages))
    is_own = plan.groups == 1 and bool(plan.batch)
    for words in filter(None, (stages.left, stages.right)):
        if is_own:
            sch.compute_at(words, task, preserve_unit_loops=True)
        _in_vectors(sch, Facts(sch, words), plan.vector * in_vectors, is_own)


def _in_vectors(sch: Schedule, words: Facts, lanes: int, is_own: bool) -> None:
    """Words, as vectors if they have lanes; in parallel, unless a task makes its own."""
    *around, last = sch.get_loops(words.block)
    if lanes and not is_own:
        vectorize_copy(sch, words, lanes)
    elif lanes:
        vectorize_row(sch, last, stored_at_once(words.spatial[-1].extent, lanes), lanes)
    elif not is_own:
        parallel_over(sch, around, words.size)


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
    """A tile of the result, in vectors; all of them, if there may be any number of columns."""
    *_, row, column = sch.get_loops(found.result)
    sch.unroll(row)
    if is_symbolic(plan.columns):
        several, column = sch.split(column, [plan.width // plan.vector, plan.vector])
        sch.unroll(several)
    vectorize(sch, column, plan.vector)


def _lay_out(sch: Schedule, found: MatmulStages, plan: MatmulPlan, task: Loop | None) -> None:
    """The panels of a task, or of all: rows of a panel are written together."""
    if task is not None:
        sch.compute_at(found.panels, task, preserve_unit_loops=True)
        return
    *around, _ = sch.get_loops(found.panels)
    parallel_over(sch, around[:-1], Facts(sch, found.panels).size)
