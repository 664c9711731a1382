"""The kernel of convolutions of integers whose sums stay integers: of words where they fill them,
else the direct one of floats on widened integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....codegen.info.ops import Ops, OpView
from ....graph import OpCall
from ....language.kernel import Kernel
from ....machine import Machine
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import View
from ..exact import sum_dtype, widened
from ..words import most_products
from . import pack as direct
from . import quantized, quantized_plan
from .form import Conv2d
from .kernel import convolution, schedule
from .layer import Layer
from .operands import Operands
from .plan import ConvPlans, plan_direct
from .quantized import sums_of_words
from .quantized_plan import QuantizedPlan, products_of

Plan = QuantizedPlan | ConvPlans


def plan(ops: Ops, machine: Machine) -> Plan:
    """That of words, or of what the sums are exact in."""
    (conv,) = ops.of("conv2d")
    weight, dtype = conv.inputs[1]
    fits = math.prod(weight[1:]) <= most_products(dtype)
    if dtype == "int8" and fits and products_of(ops, machine):
        return quantized_plan.plan(ops, machine)
    layer = Layer.of(conv, _dtype(conv))
    return ConvPlans(((layer.name, plan_direct(layer, machine)),), machine)


def _dtype(op: OpView | OpCall) -> str:
    """What an op sums in."""
    image, kernel = op.inputs
    return sum_dtype(math.prod(kernel.shape[1:]), image.dtype, kernel.dtype)


def pack(weight: Tensor, plan: Plan, call: OpCall) -> Tensor:
    """As for floats: words, or widened: what is broadcast needs no conversion in the loop."""
    if isinstance(plan, QuantizedPlan):
        return quantized.pack(weight, plan)
    return direct.pack(widened(weight, _dtype(call)), call.attrs["groups"])


def conv2d(inputs: Sequence[Tensor], call: OpCall, plan: Plan) -> Any:
    """The direct convolution of floats, on words or on widened integers: the padded copy widens."""
    (x, weight), out = inputs, call.outputs[0].shape
    if isinstance(plan, QuantizedPlan):
        return _of_words(Conv2d(x, weight, call.attrs, out, call.name), plan)
    dtype = _dtype(call)
    image = View(x.shape, dtype, lambda *i: x(*i).astype(dtype))
    outside = Operands(padding=tir.const(_around(call), dtype))
    conv = Conv2d(image, weight, call.attrs, out, call.name, outside)
    stages = convolution(conv, plan.of(call.name))
    return replace(stages, result=widened(stages.result, "int32"))


def _around(asked: OpCall | Conv2d) -> int:
    """The level that the padding holds."""
    return int(asked.attrs.get("pad_value", 0))


def _of_words(asked: Conv2d, plan: QuantizedPlan) -> Any:
    zero, around = (tir.const(level, "int32") for level in (0, _around(asked)))
    stages, offset = sums_of_words(asked, zero, plan, around)
    if offset is None:
        return stages

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        return stages.result(n, o, y, z) - offset(o)

    return replace(stages, result=te.compute(asked.out, element, name=f"{asked.name}_sums"))


NARROWED_CONV = Kernel(
    plan,
    {"conv2d": conv2d},
    lambda sch, stages, plan: schedule(
        sch, stages, plan.convs if isinstance(plan, QuantizedPlan) else plan
    ),
    {"weight": pack},
)
