"""Convolutions of words of two bfloat16: of a weight, and of channels of the image, which are
rounded as the model has them. The plan, the forms and the schedule are those of floats over half of
the channels; sums are float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ....codegen.info.ops import Ops, OpView
from ....machine import Machine
from ....tvm.own_ops import BFLOATS, dot
from ....tvm.types import Shape, Stage
from ...steps.faults import Faults
from ..bfloat16 import HELD, LEAST_PRODUCTS, WORD, RoundedWords, machine_of
from ..words import words_of
from .channels.plan import ChannelPlan
from .form import Conv2d
from .layer import Layer
from .operands import Operands
from .pixels.plan import PixelPlan
from .pointwise.plan import PointwisePlan

DirectPlan = PixelPlan | PointwisePlan | ChannelPlan


@dataclass(frozen=True)
class RoundedPlan:
    """The plan of a direct convolution over words."""

    conv: DirectPlan

    def __str__(self) -> str:
        return f"{self.conv}, of words of {WORD} {HELD}"

    def faults(self, layer: Layer, cpu: Machine) -> Faults:
        """Of the plan that it is made of, for a layer of words."""
        yield from self.conv.faults(layer, machine_of(cpu, True))


@dataclass(frozen=True)
class RoundedStages:
    """The stages of a convolution of words: tensors, and while scheduling their blocks."""

    conv: Any  # those of its form
    result: Stage
    words: Stage | None  # of the image, where its form does not read each once


def is_of_words(ops: Ops, conv: OpView, cpu: Machine) -> bool:
    """Whether a convolution is one of words, if it is a direct one: where its weight is bfloat16 in
    the model, and what was packed, perhaps for another CPU, as it lies.
    """
    packing, weight = ops.packing(conv, 1), conv.inputs[1][0]
    if not packing.as_held or packing.held != HELD or weight[1] == 1:
        return False
    if packing.shape is not None:
        return packing.shape[1] == words_of(weight[1], WORD)
    pays = bool(cpu.products_of_bfloat16) and may_pay(weight, conv.attrs["groups"])
    return packing.ahead and pays


def may_pay(weight: Shape, groups: int = 1) -> bool:
    """Whether each channel of an image has products enough, by the weight [O, I, H, W]."""
    outputs, depth, *window = weight
    return depth > 1 and outputs // groups * math.prod(window) >= LEAST_PRODUCTS


def time_of_words(cpu: Machine) -> float:
    """Of products, beside floats; one where the CPU has no instruction for it."""
    return cpu.multiply_adds / (WORD * cpu.bfloat16) if cpu.bfloat16 else 1.0


def in_words(conv: Conv2d) -> tuple[Conv2d, RoundedWords]:
    """A convolution of floats by a weight of words, as one of words, and its image."""
    image = RoundedWords(conv.x, conv.attrs["groups"], f"{conv.name}_words")
    return replace(conv, x=image, operands=Operands(partial(dot, BFLOATS))), image
