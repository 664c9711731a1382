"""A dense layer of levels: words by the CPU's dot products, on the plan of floats over a part of
the depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ....codegen.info.op_record import describe
from ....codegen.info.ops import Ops
from ....language.kernel import Kernel
from ....machine import Machine
from ....tvm import te, tir
from ....tvm.own_ops import dot
from ....tvm.types import PrimExpr, Tensor
from ...steps.faults import Faults, unlike
from ...steps.tensors import extents
from ...steps.tiles import BLOCK
from ..words import (
    Scaled,
    Words,
    only,
    unsigned,
    weight_sums,
    weight_words,
    word_as_packed,
    words_of,
)
from .compute import Dense, in_tiles, product, result
from .forms import ProductPlan
from .pack import pack_weight
from .plan import lead_of, passes_of_one, plan_rows, product_plan
from .schedule import schedule_dense


@dataclass(frozen=True)
class QuantizedPlan:
    """The plan of a product of words."""

    product: ProductPlan
    word: int  # levels of one

    def __str__(self) -> str:
        return f"{self.product}, of words of {self.word}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the product of words that it is."""
        (x, _), (weight, _) = ops.dense.inputs[:2]
        depth = words_of(x[-1], self.word)
        inputs = [((*x[:-1], depth), "int32"), ((weight[0], depth), "int32")]
        out = (ops.dense.outputs[0][0], "int32")
        yield from unlike("levels of a word", self.word, word_as_packed(ops, cpu, x[-1]))
        alone = describe(ops.dense.name, "dense", ops.dense.attrs, inputs, [out])
        yield from self.product.faults(Ops([alone]), cpu)


def plan(ops: Ops, machine: Machine) -> QuantizedPlan:
    """That of a float product of as many words."""
    shape, _ = ops.dense.outputs[0]
    inputs = ops.dense.inputs[0][0][-1]
    word = word_as_packed(ops, machine, inputs)
    depth = words_of(inputs, word)
    rows = plan_rows(lead_of(shape), depth, shape[-1], "int32", machine)
    passes = passes_of_one(rows, depth, machine)
    found = product_plan(rows, depth, shape[-1], "int32", machine, "outputs", passes=passes)
    return QuantizedPlan(found, word)


def pack(weight: Tensor, plan: QuantizedPlan) -> Tensor:
    """[units, in] -> [units/16, in/word + 1, 16] of words, as floats lie; the last row of a block
    has the sums of its units' weights, which a zero point is multiplied by.
    """
    body = pack_weight(weight_words(weight, plan.word), plan.product)
    sums = weight_sums(weight)
    (blocks, depth, _), (units, _) = extents(body), extents(weight)

    def element(b: PrimExpr, i: PrimExpr, lane: PrimExpr) -> PrimExpr:
        total = sums(tir.Min(b * BLOCK + lane, units - 1))
        return tir.if_then_else(i < depth, body(b, tir.Min(i, depth - 1), lane), total)

    return te.compute((blocks, depth + 1, BLOCK), element, name=f"{body.op.name}_sums")


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
) -> Dense:
    """The sums, then scale and bias while a tile is in registers. The weight's zero point is the
    middle of its dtype, and gone since it was packed.
    """
    units, depth = ops.dense.outputs[0][0][-1], words_of(int(x.shape[-1]), plan.word)
    level = unsigned(only(x_zero), x.dtype)
    words = Words(x, len(x.shape) - 1, plan.word).stage()
    rows, times = in_tiles(words, plan.product.rows), partial(dot, plan.word)
    found = product(rows, weight, "int32", plan.product, times=times)
    scaled = Scaled(x_scale, w_scale, bias)
    is_padded = int(found.sums.shape[-3]) * BLOCK > units

    def element(*i: PrimExpr) -> PrimExpr:
        unit = i[-3] * BLOCK + i[-1]
        unit = tir.Min(unit, units - 1) if is_padded else unit
        return scaled(found.sums(*i) - weight(i[-3], depth, i[-1]) * level, unit)

    outputs = te.compute(found.sums.shape, element, name="outputs")
    return Dense(found, outputs, result(plan.product.rows, outputs, units))


QUANTIZED_DENSE = Kernel(
    plan,
    compute,
    lambda sch, stages, plan: schedule_dense(sch, stages, plan.product),
    pack={"weight": pack},
)
