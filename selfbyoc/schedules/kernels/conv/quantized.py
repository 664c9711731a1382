"""Convolutions of levels: of words by the CPU's dot products, by Winograd where that pays, or of
floats that hold integers.

The plan, the forms and the schedule are those of floats over a part of the channels, or of the
window. Sums are exact; their zero points and scales are applied while a tile is in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ....codegen.info.ops import Ops
from ....language.kernel import Kernel
from ....tvm import te, tir
from ....tvm.own_ops import PAIRS, dot
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import View, extents, split_index
from ..winograd import pack as winograd_pack
from ..winograd.plan import WinogradPlan
from ..words import (
    Scaled,
    Words,
    all_alike,
    counted,
    only,
    pairs_of,
    signed,
    weight_sums,
    weight_words,
)
from . import kernel
from .columns import Columns
from .form import Conv2d
from .operands import Operands
from .quantized_plan import QuantizedPlan, plan
from .staged import StagedStages, schedule


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
    body = kernel.packed(weight_words(weight, plan.word, plan.axis), plan.conv, plan.groups)
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
    asked: Conv2d, zero: PrimExpr, plan: QuantizedPlan, around: PrimExpr | None = None
) -> tuple[Any, Callable[[PrimExpr], PrimExpr] | None]:
    """The stages of sums of an image of levels, and what is too much in the sum of an output
    channel, if anything; `zero` is the level of zero, which is around the image unless another is.
    """
    x, weight = asked.x, asked.weight
    if isinstance(plan.conv, WinogradPlan):
        fill = None if around is None else (around - zero) * ((1 << 16) + 1)
        operands = Operands(partial(dot, PAIRS), fill)
        pairs = replace(asked, x=pairs_of(x, zero), operands=operands)
        return kernel.convolution(pairs, plan.conv), None
    outside = counted(zero if around is None else around, x.dtype, plan.products)
    level = counted(zero, x.dtype, plan.products)
    # After the last input are the sums of the others.
    blocks, depth, *window, rows = extents(weight)
    body = View((blocks, depth - 1, *window, rows), "int32", weight)
    times = partial(dot, plan.products)

    def offset(o: PrimExpr) -> PrimExpr:
        block, row = split_index(o, rows)
        return weight(block, depth - 1, 0, 0, row) * level

    if plan.columns:
        read = Columns(plan.products, plan.columns, outside)
        words = replace(asked, weight=body, operands=Operands(times, columns=read))
    else:
        image = Words(x, 1, plan.products, plan.groups)
        operands = Operands(times, all_alike(outside, plan.word))
        words = replace(asked, x=image, weight=body, operands=operands)
    return kernel.convolution(words, plan.conv), offset


QUANTIZED_CONV = Kernel(
    plan,
    compute,
    lambda sch, stages, plan: schedule(sch, stages, plan.convs),
    pack={"weight": pack},
)
