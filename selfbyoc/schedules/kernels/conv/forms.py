"""The forms of convolution. Which one a convolution takes, `plan.py` decides."""

from __future__ import annotations

from ....tvm.types import Block, Tensor
from ...steps.images import Work
from ..bfloat16 import weight_words
from ..winograd import compute as winograd
from ..winograd import pack as winograd_pack
from ..winograd import schedule as winograd_schedule
from ..winograd.compute import WinogradStages
from ..winograd.plan import WinogradPlan
from . import pack as direct_pack
from .channels import compute as channels
from .channels import schedule as channels_schedule
from .channels.plan import ChannelPlan
from .depthwise import compute as depthwise
from .depthwise import schedule as depthwise_schedule
from .depthwise.plan import DepthwisePlan
from .form import Conv2d, Form, image_copies
from .groups import compute as groups
from .groups import pack as groups_pack
from .groups import schedule as groups_schedule
from .groups.plan import GroupPlan
from .pixels import compute as pixels
from .pixels import schedule as pixels_schedule
from .pixels.plan import PixelPlan
from .pointwise import compute as pointwise
from .pointwise import schedule as pointwise_schedule
from .pointwise.plan import PointwisePlan
from .rounded import RoundedPlan, RoundedStages, in_words


def _rows(weight: Tensor, plan: object, groups: int) -> Tensor:
    """Blocks of output channels that are rows of register tiles."""
    return direct_pack.pack(weight, groups)


def _vectors(weight: Tensor, plan: ChannelPlan, groups: int) -> Tensor:
    """Blocks of output channels that are vectors."""
    return direct_pack.pack(weight, groups, whole=True)


def _by_groups(weight: Tensor, plan: GroupPlan, groups: int) -> Tensor:
    return groups_pack.pack(weight, plan)


def _transformed(weight: Tensor, plan: WinogradPlan, groups: int) -> Tensor:
    return winograd_pack.pack(weight, plan)


def _by_winograd(conv: Conv2d, plan: WinogradPlan) -> WinogradStages:
    return winograd.convolution(conv, plan)


def _words(weight: Tensor, plan: RoundedPlan, groups: int) -> Tensor:
    return form_of(plan.conv).pack(weight_words(weight), plan.conv, groups)


def _of_words(conv: Conv2d, plan: RoundedPlan) -> RoundedStages:
    conv, image = in_words(conv)
    stages = form_of(plan.conv).compute(conv, plan.conv)
    return RoundedStages(stages, stages.result, image.staged)


def _schedule_words(work: Work, stages: RoundedStages, plan: RoundedPlan) -> None:
    form_of(plan.conv).schedule(work, stages.conv, plan.conv)


def _stays_of_words(work: Work, stages: RoundedStages, plan: RoundedPlan) -> set[str]:
    return form_of(plan.conv).stays(work, stages.conv, plan.conv)


def _copies_of_words(stages: RoundedStages) -> list[Block]:
    found = [*image_copies(stages.conv), stages.words]
    return [block for block in found if block is not None]


FORMS = (
    Form(PixelPlan, _rows, pixels.convolution, pixels_schedule.schedule),
    Form(DepthwisePlan, _rows, depthwise.convolution, depthwise_schedule.schedule),
    Form(
        PointwisePlan, _rows, pointwise.convolution, pointwise_schedule.schedule,
        pointwise_schedule.stays,
    ),
    Form(
        ChannelPlan, _vectors, channels.convolution, channels_schedule.schedule,
        channels_schedule.stays,
    ),
    Form(
        GroupPlan, _by_groups, groups.convolution, groups_schedule.schedule, groups_schedule.stays
    ),
    Form(
        WinogradPlan, _transformed, _by_winograd, winograd_schedule.schedule,
        winograd_schedule.stays,
    ),
    Form(
        RoundedPlan, _words, _of_words, _schedule_words, _stays_of_words, _copies_of_words,
    ),
)  # fmt: skip
_BY_PLAN = {form.plan: form for form in FORMS}


def form_of(plan: object) -> Form:
    """The form that a plan is of."""
    return _BY_PLAN[type(plan)]
