"""The kernel of composites that are made of convolutions: each by its own plan, with what is
elementwise around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....codegen.elementwise import staged
from ....graph import OpCall
from ....language.kernel import Kernel
from ....language.types import Attrs, Block, Schedule, Shape, Tensor
from ....ops.vocabulary import compute_of
from ....tir.concatenates import is_concatenate
from ....tvm import dtype_of, te
from ....tvm.starts import lowest
from ...steps.blocks import Facts, facts
from ...steps.images import Work, image_of
from ...steps.loops import inline_injective
from ...steps.stages import stages as schedule_stages
from ..winograd import compute as winograd
from ..winograd import pack as winograd_pack
from ..winograd import schedule as winograd_schedule
from ..winograd.compute import WinogradStages
from ..winograd.plan import WinogradPlan
from . import pack as direct_pack
from .channels import compute as channels
from .channels import schedule as channels_schedule
from .channels.compute import ChannelStages
from .channels.plan import ChannelPlan
from .groups import compute as groups
from .groups import pack as groups_pack
from .groups import schedule as groups_schedule
from .groups.compute import GroupStages
from .groups.plan import GroupPlan
from .operands import FLOATS, Operands
from .pixels import compute as pixels
from .pixels import schedule as pixels_schedule
from .pixels.compute import PixelStages
from .pixels.plan import PixelPlan
from .plan import ConvPlan, ConvPlans, plan
from .pointwise import compute as pointwise
from .pointwise import schedule as pointwise_schedule
from .pointwise.compute import PointwiseStages
from .pointwise.plan import IN_PLACE, PointwisePlan

Stages = PixelStages | PointwiseStages | ChannelStages | GroupStages | WinogradStages


def pack(weight: Tensor, plans: ConvPlans, call: OpCall) -> Tensor:
    """[O, I, H, W] as the convolution that reads it wants it."""
    return packed(weight, plans.of(call.name), call.attrs["groups"])


def packed(weight: Tensor, found: ConvPlan, groups: int) -> Tensor:
    """The same by a plan."""
    if isinstance(found, WinogradPlan):
        return winograd_pack.pack(weight, found)
    if isinstance(found, GroupPlan):
        return groups_pack.pack(weight, found)
    return direct_pack.pack(weight, groups, whole=isinstance(found, ChannelPlan))


def conv2d(inputs: Sequence[Tensor], call: OpCall, plans: ConvPlans) -> Stages:
    """The compute that stands in for `conv2d`: `x` and a packed weight."""
    x, weight = inputs
    return convolution(x, weight, call.attrs, call.outputs[0].shape, plans.of(call.name), call.name)


def convolution(
    x: Tensor,
    weight: Tensor,
    attrs: Attrs,
    out: Shape,
    plan: ConvPlan,
    name: str,
    operands: Operands = FLOATS,
) -> Stages:
    """A convolution by its plan. What is computed of `x` first is part of the stage that packs it,
    if that is in vectors and reads each element once.
    """
    if isinstance(plan, WinogradPlan):
        return winograd.convolution(x, weight, plan, name)
    if not (isinstance(plan, PointwisePlan) and plan.panels != IN_PLACE and plan.padded is None):
        x = staged(x)
    if isinstance(plan, GroupPlan):
        return groups.convolution(x, weight, out, plan, name)
    if isinstance(plan, ChannelPlan):
        return channels.convolution(x, weight, attrs, out, plan, name, operands)
    if isinstance(plan, PixelPlan):
        return pixels.convolution(x, weight, attrs, out, plan, name, operands)
    return pointwise.convolution(x, weight, attrs, out, plan, name, operands)


def max_pool2d(inputs: Sequence[Tensor], call: OpCall, plans: ConvPlans) -> Any:
    """NCHW max_pool2d; the padding never wins."""
    found = plans.of(call.name)
    if found is None:
        return compute_of("max_pool2d")(inputs, call)
    (x,) = inputs
    return pixels.pooled(x, call, found, te.max, lowest(dtype_of(x)), call.name)


def schedule(sch: Schedule, stages: Mapping[str, Any], plans: ConvPlans) -> None:
    """Padded copies, then tiles, each stage in parallel: two regions (1-2 us) cost less than a
    recomputed halo.
    """
    found = {name: stages[name] for name, _ in plans.plans}
    work = Work(sch)
    inline(work, list(found.values()))
    for name, of_op in found.items():
        schedule_one(work, of_op, plans.of(name))
    left = [b for b in facts(sch) if b.name not in work.done]
    schedule_stages(sch, left, plans.machine, work.finish)
    for last in work.finish:
        last()


def inline(work: Work, found: Sequence[Stages]) -> None:
    """Inline what is elementwise; what stays is what the forms ask for."""
    sch = work.sch
    by_winograd = [s for s in found if isinstance(s, WinogradStages)]
    joined = winograd_schedule.join(sch, by_winograd)
    laid_out = [_copy_of(stages) for stages in found]
    work.copies |= {Facts(sch, b).name for b in laid_out if b is not None}
    # What stands before a copy is applied to the tiles: the copy, which tests for the border, only
    # copies. What a concatenate copies becomes slices of its result (tir/concatenates.py).
    copies = [b for b in facts(sch) if b.name in work.copies or is_concatenate(b.stmt)]
    stay = {p.name for b in copies for p in b.producers} | joined | work.copies
    for of_op in found:
        if isinstance(of_op, PointwiseStages):
            stay |= pointwise_schedule.stays(work, of_op)
        if isinstance(of_op, GroupStages):
            stay |= groups_schedule.stays(work, of_op)
    inline_injective(sch, stay)


def _copy_of(stages: Stages) -> Block | None:
    """The block that lays the image out for a window, if one does."""
    if isinstance(stages, WinogradStages):
        return stages.image
    return stages.copy


def schedule_one(work: Work, stages: Stages, plan: Any) -> None:
    """One convolution by its plan."""
    if isinstance(stages, WinogradStages):
        reader = image_of(work, Facts(work.sch, stages.pixels))
        winograd_schedule.schedule(work, stages, plan, reader)
    elif isinstance(stages, GroupStages):
        groups_schedule.schedule(work, stages, plan)
    elif isinstance(stages, ChannelStages):
        channels_schedule.schedule(work, stages, plan)
    elif isinstance(stages, PixelStages):
        pixels_schedule.schedule(work, stages, plan)
    else:
        pointwise_schedule.schedule(work, stages, plan)
        if stages.copy is not None:
            pixels_schedule.pad_rows(work, Facts(work.sch, stages.copy), plan.padded, plan.vector)


CONV = Kernel(plan, {"conv2d": conv2d}, schedule, {"weight": pack})
_WEIGHTS = ("w1", "w3_reduce", "w3", "w5_reduce", "w5", "w_pool")
INCEPTION = Kernel(
    plan, {"conv2d": conv2d, "max_pool2d": max_pool2d}, schedule, dict.fromkeys(_WEIGHTS, pack)
)
