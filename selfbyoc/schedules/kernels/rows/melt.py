"""The schedule of operators over rows: all stages of a row one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from ....language.decisions import is_symbolic
from ....tvm.types import Block, Loop, Schedule
from ...steps.blocks import Facts, divisor
from ...steps.loops import Finish
from ...steps.registers import sum_in_tile
from .product import extent_of
from .rowwise import RowwisePlan


def melt_rows(
    sch: Schedule,
    before: Sequence[Block],
    result: Block,
    plan: RowwisePlan,
    task: Loop | None = None,
) -> list[Finish]:
    """The stages of each row in front of `result` [row ..., k]; rows in parallel or under a task.

    `before` are those stages, each after all of its readers.
    """
    if task is not None:
        sch.compute_at(result, task, preserve_unit_loops=True)
    last = Facts(sch, result)
    *rows, column = list(sch.get_loops(result))[-len(last.axes) :]
    # Split before fusing: TVM does not see that the blocks that come under `row` are whole when it
    # divides what was fused by what was split.
    *lead, tile = *rows[:-1], sch.split(rows[-1], [None, plan.at_once])[0]
    row = sch.fuse(*lead, tile) if lead else tile
    _vectorize_columns(sch, column, plan)
    if plan.parallel:
        sch.parallel(row)
    for block in before:
        sch.compute_at(block, row, preserve_unit_loops=True)
    finish: list[Finish] = []
    for stage in (Facts(sch, block) for block in before):
        if stage.reduction:
            finish += _reduce_row(sch, stage, last, plan.lanes)
        elif len(stage.spatial) == len(last.spatial):
            _vectorize_columns(sch, list(sch.get_loops(stage.block))[-1], plan)
    return finish


def _vectorize_columns(sch: Schedule, loop: Loop, plan: RowwisePlan) -> None:
    """Whole vectors; narrower ones where the extent asks for it. Of rows whose last vector is not
    full LLVM makes vectors and a tail.
    """
    extent = extent_of(sch, loop)
    width = divisor(extent, plan.lanes)
    if width > 1 and extent % plan.partial == 0 and not is_symbolic(extent):
        sch.vectorize(sch.split(loop, [None, width])[1])


def _reduce_row(sch: Schedule, block: Facts, last: Facts, lanes: int) -> list[Finish]:
    """Partial results in vectors (a block with a lane axis), or the one result of them."""
    *_, row, lane, k = sch.get_loops(block.block)
    if len(block.spatial) < len(last.spatial):
        sch.unroll(k)
        return []
    return [sum_in_tile(sch, block.block, [k], [row, lane], lanes)]
