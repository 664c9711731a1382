"""The kernels of pools, and their schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....language.kernel import Kernel
from ....tvm.types import Block, Schedule
from ...steps.blocks import stored_at_once
from ...steps.loops import vectorize_row
from ...steps.parallel import parallel_over
from ..conv.kernel import schedule as schedule_windows
from ..conv.pixels.plan import PixelPlan
from ..conv.plan import ConvPlans
from .compute import RowStages, avg_pool2d, max_pool2d
from .plan import PoolPlan, RowPlan, plan


def schedule(sch: Schedule, stages: Mapping[str, Any], plan: PoolPlan) -> None:
    """Row by row, or as a window of a convolution; what has no form by default."""
    if isinstance(plan.form, RowPlan):
        _rows(sch, stages[plan.name], plan.form)
        return
    planned = ((plan.name, plan.form),) if isinstance(plan.form, PixelPlan) else ()
    schedule_windows(sch, stages, ConvPlans(planned, plan.machine))


def _rows(sch: Schedule, stages: RowStages, plan: RowPlan) -> None:
    """for image, in parallel: for row: down; along; out."""
    *outer, y, _ = sch.get_loops(stages.result)
    for block in (stages.every, stages.down):
        if block is not None:
            sch.compute_at(block, y, preserve_unit_loops=True)
    # What tests for a border, and what is read with a stride, LLVM's vectoriser does better.
    if not plan.along.is_padded:
        _columns(sch, stages.down, plan.lanes)
    _columns(sch, stages.result if stages.every is None else stages.every, plan.lanes)
    steps = plan.images * plan.down.out * plan.columns
    parallel_over(sch, outer if plan.by_image else [*outer, y], steps)


def _columns(sch: Schedule, block: Block, lanes: int) -> None:
    """The last loop in vectors: whole ones, or what LLVM cuts into whole ones and a tail."""
    loop = list(sch.get_loops(block))[-1]
    extent = int(sch.get(loop).extent)
    vectorize_row(sch, loop, stored_at_once(extent, lanes), lanes)


MAX_POOL = Kernel(plan, {"max_pool2d": max_pool2d}, schedule)
AVG_POOL = Kernel(plan, {"avg_pool2d": avg_pool2d}, schedule)
