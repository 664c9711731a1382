"""Convolutions of levels: of words by the CPU's dot products, by Winograd where that pays, or, of
few channels a group, of floats that hold integers.

The plan, the forms and the schedule are those of floats over a part of the channels. Sums are
exact; their zero points and scales are applied while a tile is in registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ....codegen.info.op_record import describe
from ....codegen.info.ops import Ops, Packing
from ....language.kernel import Kernel
from ....machine import Machine
from ....tvm import te, tir
from ....tvm.own_ops import LEVELS_OF, PAIRS, dot
from ....tvm.types import PrimExpr, Tensor
from ...steps.faults import Faults, unlike
from ...steps.tensors import View, extents, split_index
from ..winograd import pack as winograd_pack
from ..winograd import plan as winograd
from ..winograd.integers import MOST_OF_WORDS
from ..winograd.plan import WinogradPlan
from ..words import (
    WIDE,
    Scaled,
    Words,
    all_alike,
    counted,
    machine_of_words,
    only,
    pairs_of,
    products_as_packed,
    signed,
    usual_products,
    weight_of,
    weight_sums,
    weight_words,
    words_of,
)
from . import kernel
from .form import Conv2d
from .operands import Operands
from .plan import ConvPlan, ConvPlans, plan_directly, plan_groups
from .staged import StagedStages, schedule

LEAST_CHANNELS = 3  # of a group, for words


def is_of_words(weight: Sequence[int]) -> bool:
    """Whether a weight [O, I, H, W] fills words."""
    return weight[1] >= LEAST_CHANNELS


@dataclass(frozen=True)
class QuantizedPlan:
    """The plan of a convolution of words, or of floats that hold integers."""

    convs: ConvPlans  # of one
    groups: int
    products: str  # of words, their kind; empty: floats

    def __str__(self) -> str:
        return f"{self.convs}, of {f'words of {self.word}' if self.products else 'exact floats'}"

    @property
    def word(self) -> int:
        """Levels of one."""
        return LEVELS_OF[self.products]

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the plan that it is made of, and of what it is for."""
        (conv,) = ops.of("conv2d")
        yield from unlike("groups", self.groups, conv.attrs["groups"])
        products = PAIRS if isinstance(self.conv, WinogradPlan) else _products(ops, cpu)
        yield from unlike("products", self.products, products)
        cpu = machine_of_words(cpu, products) if products else cpu
        yield from self.convs.faults(_ops_of(ops, products), cpu)

    @property
    def conv(self) -> ConvPlan:
        """Of the convolution."""
        ((_, found),) = self.convs.plans
        return found


def _products(ops: Ops, cpu: Machine) -> str:
    (conv,) = ops.of("conv2d")
    weight = conv.inputs[1][0]
    return products_as_packed(ops, cpu, weight[1]) if is_of_words(weight) else ""


def _ops_of(ops: Ops, products: str) -> Ops:
    """The convolution alone, as one of words or of floats, with its weight's packing."""
    (conv,), (packing, _) = ops.of("conv2d"), weight_of(ops)
    (image, _), (weight, _) = conv.inputs[:2]
    inputs = [(image, "float32"), (weight, "float32")]
    if products:
        depth = words_of(weight[1], LEVELS_OF[products])
        image = (image[0], conv.attrs["groups"] * depth, *image[2:])
        inputs = [(image, "int32"), ((weight[0], depth, *weight[2:]), "int32")]
    info = describe(
        conv.name, conv.kind, conv.attrs, inputs, [(conv.outputs[0].shape, conv.outputs[0].dtype)]
    )
    return Ops([info], operands={(conv.name, 1): packing})


def plan(ops: Ops, machine: Machine) -> QuantizedPlan:
    """The plan of the convolution as one of words, or of floats."""
    by_winograd = _winograd(ops, machine)
    if by_winograd is not None:
        return by_winograd
    products = _products(ops, machine)
    machine = machine_of_words(machine, products) if products else machine
    alone = _ops_of(ops, products)
    (conv,) = alone.of("conv2d")
    grouped = None if products else plan_groups(alone, conv, machine)
    if grouped is None:
        found = plan_directly(alone, machine)
    else:
        found = ConvPlans(((conv.name, grouped),), machine)
    return QuantizedPlan(found, conv.attrs["groups"], products)


def _winograd(ops: Ops, machine: Machine) -> QuantizedPlan | None:
    """The plan by Winograd, of words of two levels on every CPU, or None where it does not pay."""
    (conv,), (packing, dtype) = ops.of("conv2d"), weight_of(ops)
    weight = conv.inputs[1][0]
    if dtype == WIDE or not is_of_words(weight) or math.prod(weight[1:]) > MOST_OF_WORDS:
        return None
    (alone,) = _ops_of(ops, PAIRS).of("conv2d")
    image, kernel = (value[0] for value in alone.inputs)
    known = packing.shape, packing.ahead, _levels_at_once(packing, machine)
    machine, out = machine_of_words(machine, PAIRS), alone.outputs[0][0]
    found = winograd.plan(image, kernel, alone.attrs, out, machine, conv.name, *known)
    if found is None:
        return None
    return QuantizedPlan(ConvPlans(((conv.name, found),), machine), 1, PAIRS)


def _levels_at_once(packing: Packing, machine: Machine) -> float:
    """Levels that the direct convolution multiplies in the time of a word of Winograd's."""
    direct = machine.product(usual_products(packing, machine))
    return LEVELS_OF[direct.kind] * machine.product(PAIRS).time / direct.time


def pack(weight: Tensor, plan: QuantizedPlan) -> Tensor:
    """As floats lie: floats, or words, and after the last word of each output the sum of its
    weights, [O/16, I/word + 1, H, W, 16].
    """
    if not plan.products:
        name = f"{weight.op.name}_exact"
        wide = te.compute(weight.shape, lambda *i: _exact(weight, *i), name=name)
        return kernel.packed(wide, plan.conv, plan.groups)
    if isinstance(plan.conv, WinogradPlan):
        return winograd_pack.pack_words(weight, plan.conv)
    body = kernel.packed(weight_words(weight, plan.word), plan.conv, plan.groups)
    sums, outputs = weight_sums(weight), int(weight.shape[0])
    blocks, depth, high, wide, rows = extents(body)

    def element(b: PrimExpr, i: PrimExpr, y: PrimExpr, x: PrimExpr, r: PrimExpr) -> PrimExpr:
        total = sums(tir.Min(b * rows + r, outputs - 1))
        return tir.if_then_else(i < depth, body(b, tir.Min(i, depth - 1), y, x, r), total)

    return te.compute((blocks, depth + 1, high, wide, rows), element, name=f"{body.op.name}_sums")


def _exact(weight: Tensor, *index: PrimExpr) -> PrimExpr:
    return signed(weight(*index), weight.dtype).astype("float32")


def _levels(x: Tensor, zero: PrimExpr) -> View:
    """An image of levels less their zero point, as floats."""
    return View(x.shape, "float32", lambda *i: (x(*i).astype("int32") - zero).astype("float32"))


def compute(
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    weight: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    bias: Tensor | None = None,
    *,
    ops: Ops,
    plan: QuantizedPlan,
) -> StagedStages:
    """The sums, then scale and bias. The weight's zero point is the middle of its dtype, and gone
    since it was packed.
    """
    (conv,) = ops.of("conv2d")
    out, zero = conv.outputs[0][0], only(x_zero).astype("int32")
    offset: Callable[[PrimExpr], PrimExpr] | None
    if plan.products:
        asked = Conv2d(x, weight, conv.attrs, out, conv.name)
        stages, offset = sums_of_words(asked, zero, plan)
    else:
        asked = Conv2d(_levels(x, zero), weight, conv.attrs, out, conv.name)
        stages, offset = kernel.convolution(asked, plan.conv), None
    scaled = Scaled(x_scale, w_scale, bias)

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        total = stages.result(n, o, y, z)
        return scaled(total if offset is None else total - offset(o), o)

    result = te.compute(out, element, name=f"{conv.name}_scaled")
    return StagedStages(result, {conv.name: replace(stages, result=result)})


def sums_of_words(
    asked: Conv2d, zero: PrimExpr, plan: QuantizedPlan
) -> tuple[Any, Callable[[PrimExpr], PrimExpr] | None]:
    """The stages of sums of an image of levels, and what is too much in the sum of an output
    channel, if anything; `zero` is the level of zero.
    """
    x, weight = asked.x, asked.weight
    if isinstance(plan.conv, WinogradPlan):
        pairs = replace(asked, x=pairs_of(x, zero), operands=Operands(partial(dot, PAIRS)))
        return kernel.convolution(pairs, plan.conv), None
    level = counted(zero, x.dtype, plan.products)
    # After the last input are the sums of the others.
    blocks, depth, *window, rows = extents(weight)
    body = View((blocks, depth - 1, *window, rows), "int32", weight)
    operands = Operands(partial(dot, plan.products), all_alike(level, plan.word))

    def offset(o: PrimExpr) -> PrimExpr:
        block, row = split_index(o, rows)
        return weight(block, depth - 1, 0, 0, row) * level

    image = Words(x, 1, plan.products, plan.groups)
    words = replace(asked, x=image, weight=body, operands=operands)
    return kernel.convolution(words, plan.conv), offset


QUANTIZED_CONV = Kernel(
    plan,
    compute,
    lambda sch, stages, plan: schedule(sch, stages, plan.convs),
    pack={"weight": pack},
)
