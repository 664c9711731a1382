"""The kernel of convolutions of int8: the direct one of floats on widened integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....codegen.info.ops import Ops, OpView
from ....graph import OpCall
from ....language.kernel import Kernel
from ....machine import Machine
from ....tvm.types import Tensor
from ...steps.tensors import View
from ..exact import sum_dtype, widened
from . import pack as direct
from .form import Conv2d
from .kernel import convolution, schedule
from .layer import Layer
from .plan import ConvPlans, plan_direct


def plan(ops: Ops, machine: Machine) -> ConvPlans:
    """The plans of every conv2d, in the dtype that its sums are exact in."""
    layers = [Layer.of(conv, _dtype(conv)) for conv in ops.of("conv2d")]
    return ConvPlans(tuple((layer.name, plan_direct(layer, machine)) for layer in layers), machine)


def _dtype(op: OpView | OpCall) -> str:
    """What an op sums in."""
    image, kernel = op.inputs
    return sum_dtype(math.prod(kernel.shape[1:]), image.dtype, kernel.dtype)


def pack(weight: Tensor, plans: ConvPlans, call: OpCall) -> Tensor:
    """As for floats, and widened: what is broadcast to a vector needs no conversion in the loop."""
    return direct.pack(widened(weight, _dtype(call)), call.attrs["groups"])


def conv2d(inputs: Sequence[Tensor], call: OpCall, plans: ConvPlans) -> Any:
    """The direct convolution of floats on widened integers: the padded copy widens."""
    (x, weight), dtype = inputs, _dtype(call)
    image = View(x.shape, dtype, lambda *i: x(*i).astype(dtype))
    conv = Conv2d(image, weight, call.attrs, call.outputs[0].shape, call.name)
    stages = convolution(conv, plans.of(call.name))
    return replace(stages, result=widened(stages.result, "int32"))


NARROWED_CONV = Kernel(plan, {"conv2d": conv2d}, schedule, {"weight": pack})
