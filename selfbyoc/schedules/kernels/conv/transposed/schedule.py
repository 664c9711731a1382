"""The schedule of a transposed convolution, and its kernel."""

from __future__ import annotations

from collections.abc import Mapping

from .....language.kernel import Kernel
from .....tvm.types import Schedule
from ....steps.blocks import Facts, divisor, facts
from ....steps.elementwise import parallel_outer
from ....steps.images import Work
from ....steps.loops import vectorize_copy
from .. import kernel
from .compute import TransposedStages, pack, transposed
from .plan import TransposedPlan, plan

MOST = 2  # vectors of each phase that a turn of the loop interleaves


def schedule(sch: Schedule, stages: Mapping[str, TransposedStages], plan: TransposedPlan) -> None:
    """The convolutions, then their pixels where they belong, after what is elementwise."""
    ((_, of_op),) = stages.items()
    work = Work(sch)
    kernel.convolutions(work, [(of_op.convs[part.name], part.plan) for part in plan.parts])
    for block in facts(sch):
        if block.name not in work.done:
            _interleave(sch, block, plan)
    for last in work.finish:
        last()


def _interleave(sch: Schedule, block: Facts, plan: TransposedPlan) -> None:
    """Phase by phase in vectors of its pixels: read together, stored a stride apart."""
    stride, width = plan.upsampling.strides[1], block.spatial[-1].extent
    if block.reduction or stride == 1 or width % stride:
        vectorize_copy(sch, block, plan.machine.lanes(block.dtype))
        return
    lanes = plan.machine.lanes("float32")
    *outer, x = sch.get_loops(block.block)
    pixels, phase = sch.split(x, [None, stride])
    # Vectors of all phases after one another: tir/interleaves.py shuffles them.
    group, lane = sch.split(pixels, [None, divisor(width // stride, MOST * lanes)])
    sch.reorder(group, phase, lane)
    sch.unroll(phase)
    sch.vectorize(lane)
    # As few loops as make even tasks. With all of them fused, TVM 0.27's CompactBufferAllocation
    # gives a buffer an extent that depends on the fused loop (4x4 with SSE), and the build ends.
    parallel_outer(sch, [*outer, group], block.size, plan.machine)


OF_IMAGES = Kernel(
    plan, {"conv2d_transpose": transposed}, schedule, {"weight": pack}, widens=lambda *_: ""
)
OF_ROWS = Kernel(plan, {"conv1d_transpose": transposed}, schedule, {"weight": pack})
