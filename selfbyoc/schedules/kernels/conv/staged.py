"""Convolutions of a composite one after the other: their stages, and the schedule of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....tvm.types import Schedule, Tensor
from . import kernel
from .plan import ConvPlans


@dataclass(frozen=True)
class StagedStages:
    """What a composite computes, and the stages of each convolution by the name of its op."""

    result: Tensor
    convs: Mapping[str, Any]


def schedule(sch: Schedule, stages: StagedStages, plans: ConvPlans) -> None:
    """Stage by stage."""
    kernel.schedule(sch, stages.convs, plans)
