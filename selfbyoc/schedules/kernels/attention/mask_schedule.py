"""The schedule of what masks say of a block of queries, and the loops that it cuts short."""

from __future__ import annotations

from ....tir.cut_loops import COUNT
from ....tvm.types import Loop, Schedule
from ...steps.loops import Finish, transpose
from .forms import BlockPlan
from .in_tiles import down_the_lanes
from .masks import MaskStages


def schedule_masks(sch: Schedule, stages: MaskStages, task: Loop, plan: BlockPlan) -> list[Finish]:
    """Before all that a task does: a block of the mask transposed, its last visible keys found."""
    finish: list[Finish] = []
    first = -2  # the first possible place
    for block in filter(None, (stages.seen, stages.furthest, stages.last, stages.turned)):
        sch.compute_at(block, task, preserve_unit_loops=True, index=first)
    if stages.turned is not None:
        *_, key, lane = sch.get_loops(stages.turned)
        tile, down = sch.split(key, [None, plan.vector])
        transpose(sch, down, lane, plan.vector)
        finish.append(down_the_lanes(sch, stages.last, tile, tile, plan.vector))
    sch.annotate(stages.seen, COUNT, 1)
    return finish
