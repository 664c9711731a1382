"""The kernel of a resized image, and its schedule."""

from __future__ import annotations

from collections.abc import Mapping

from ....language.kernel import Kernel
from ....tvm.types import Block, Schedule
from ...steps.loops import vectorize
from ...steps.parallel import parallel_over
from .compute import ResizeStages, resize2d
from .plan import ALONG, CHANNELS, ResizePlan, plan, row_width


def schedule(sch: Schedule, stages: Mapping[str, ResizeStages], plan: ResizePlan) -> None:
    """for image, in parallel: the first pass; for row: the second one."""
    found: ResizeStages = stages[plan.name]
    *outer, y, _ = sch.get_loops(found.result)
    steps = plan.images * plan.down.out * plan.along.out
    if plan.first == CHANNELS:  # (n, row), column, channel
        _columns(sch, found.result, plan)
        parallel_over(sch, outer, steps)
        return
    if plan.first == ALONG:
        _along_first(sch, found, plan, steps)
        return
    for block in (found.every, found.first):
        if block is not None:
            sch.compute_at(block, y, preserve_unit_loops=True)
    if found.first is not None:
        _columns(sch, found.first, plan)
    _columns(sch, found.result, plan, shuffled=plan.width > 0 and found.every is None)
    if found.every is not None and plan.width:
        _columns(sch, found.every, plan, shuffled=True)
    parallel_over(sch, outer if plan.by_image else [*outer, y], steps)


def _along_first(sch: Schedule, found: ResizeStages, plan: ResizePlan, steps: int) -> None:
    """Few images have the passes one after the other, each in parallel over rows."""
    *outer, y, _ = sch.get_loops(found.result)
    _columns(sch, found.result, plan)
    if plan.by_image:
        image = parallel_over(sch, outer, steps)
        sch.compute_at(found.first, image, preserve_unit_loops=True)
        _first(sch, found, plan)
        return
    parallel_over(sch, [*outer, y], steps)
    *rows, _ = sch.get_loops(found.first)
    parallel_over(sch, rows, plan.images * plan.down.extent * plan.along.out)
    _first(sch, found, plan)


def _first(sch: Schedule, found: ResizeStages, plan: ResizePlan) -> None:
    if plan.width:
        _columns(sch, found.first, plan, shuffled=True)


def _columns(sch: Schedule, block: Block, plan: ResizePlan, shuffled: bool = False) -> None:
    """The last loop in vectors; unrolled where each lane is a pixel that is known then."""
    loop = list(sch.get_loops(block))[-1]
    width = row_width(int(sch.get(loop).extent), plan.lanes)
    if not width:
        return
    outer, inner = sch.split(loop, [None, width])
    vectorize(sch, inner, plan.lanes)
    if shuffled and int(sch.get(outer).extent) > 1:
        sch.unroll(outer)


RESIZE = Kernel(plan, {"resize2d": resize2d}, schedule)
