"""The kernel of composites that are made of convolutions: each by its own plan, with what is
elementwise around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....graph import OpCall
from ....language.kernel import Kernel
from ....ops.vocabulary import compute_of
from ....tir.concatenates import is_concatenate
from ....tvm import dtype_of, te
from ....tvm.starts import lowest
from ....tvm.types import Schedule, Tensor
from ...steps.blocks import Facts, facts
from ...steps.images import Work
from ...steps.loops import inline_injective
from ...steps.stages import stages as schedule_stages
from ..winograd import schedule as winograd_schedule
from ..winograd.compute import WinogradStages
from .form import Conv2d
from .forms import form_of
from .pixels import compute as pixels
from .plan import ConvPlan, ConvPlans, plan
from .widened import widens


def pack(weight: Tensor, plans: ConvPlans, call: OpCall) -> Tensor:
    """[O, I, H, W] as the convolution that reads it wants it."""
    return packed(weight, plans.of(call.name), call.attrs["groups"])


def packed(weight: Tensor, found: ConvPlan, groups: int) -> Tensor:
    """The same by a plan."""
    return form_of(found).pack(weight, found, groups)


def conv2d(inputs: Sequence[Tensor], call: OpCall, plans: ConvPlans) -> Any:
    """The compute that stands in for `conv2d`: `x` and a packed weight."""
    x, weight = inputs
    conv = Conv2d(x, weight, call.attrs, call.outputs[0].shape, call.name)
    return convolution(conv, plans.of(call.name))


def convolution(conv: Conv2d, plan: ConvPlan) -> Any:
    """The stages of a convolution by its plan."""
    return form_of(plan).compute(conv, plan)


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
    work = Work(sch)
    convolutions(work, [(stages[name], found) for name, found in plans.plans])
    left = [b for b in facts(sch) if b.name not in work.done]
    schedule_stages(sch, left, plans.machine, work.finish)
    for last in work.finish:
        last()


def convolutions(work: Work, found: Sequence[tuple[Any, ConvPlan]]) -> None:
    """Each convolution by its plan, after what is elementwise between them is inlined."""
    _inline(work, found)
    for stages, made in found:
        form_of(made).schedule(work, stages, made)


def _inline(work: Work, found: Sequence[tuple[Any, ConvPlan]]) -> None:
    """Inline what is elementwise; what stays is what the forms ask for."""
    sch = work.sch
    winograd_schedule.join(sch, [s for s, _ in found if isinstance(s, WinogradStages)])
    laid_out = [block for stages, made in found for block in form_of(made).copies(stages)]
    work.copies |= {Facts(sch, b).name for b in laid_out}
    # What stands before a copy is applied to the tiles: the copy, which tests for the border, only
    # copies. What a concatenate copies becomes slices of its result (tir/concatenates.py).
    copies = [b for b in facts(sch) if b.name in work.copies or is_concatenate(b.stmt)]
    stay = {p.name for b in copies for p in b.producers} | work.copies
    for stages, made in found:
        stay |= form_of(made).stays(work, stages, made)
    inline_injective(sch, stay)


CONV = Kernel(plan, {"conv2d": conv2d}, schedule, {"weight": pack}, widens=widens)
_WEIGHTS = ("w1", "w3_reduce", "w3", "w5_reduce", "w5", "w_pool")
INCEPTION = Kernel(
    plan, {"conv2d": conv2d, "max_pool2d": max_pool2d}, schedule, dict.fromkeys(_WEIGHTS, pack),
    widens=widens,
)  # fmt: skip
