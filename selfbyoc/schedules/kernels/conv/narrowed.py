"""The kernel of convolutions of int8: the direct one of floats on widened integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ....codegen.info.ops import Ops, OpView
from ....graph import OpCall
from ....language.kernel import Kernel
from ....language.types import Expr, Tensor
from ....machine import Machine
from ..exact import sum_dtype, widened
from . import pack as direct
from .kernel import Stages, convolution, schedule
from .layer import Layer
from .plan import ConvPlans, plan_direct


class _Widened:
    """A tensor read in another dtype: no stage of its own, so that the padded copy widens too."""

    def __init__(self, tensor: Tensor, dtype: str) -> None:
        self.tensor, self.shape, self.dtype = tensor, tensor.shape, dtype

    def __call__(self, *index: Expr) -> Expr:
        return self.tensor(*index).astype(self.dtype)


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


def conv2d(inputs: Sequence[Tensor], call: OpCall, plans: ConvPlans) -> Stages:
    """The direct convolution of floats on widened integers."""
    (x, weight), dtype, found = inputs, _dtype(call), plans.of(call.name)
    image = _Widened(x, dtype)
    stages = convolution(image, weight, call.attrs, call.outputs[0].shape, found, call.name)
    return replace(stages, result=widened(stages.result, "int32"))


NARROWED_CONV = Kernel(plan, {"conv2d": conv2d}, schedule, {"weight": pack})
