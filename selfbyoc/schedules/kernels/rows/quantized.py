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
from ....tvm.own_ops import LEVELS_OF, dot
from ....tvm.types import PrimExpr, Tensor
from ...steps.faults import Faults, unlike
from ...steps.tensors import extents
from ...steps.tiles import BLOCK
from ..words import (
    Scaled,
    Words,
    counted,
    machine_of_words,
    only,
    products_as_packed,
    weight_sums,
    weight_words,
    words_of,
)
from .compute import Dense, Product, in_tiles, product, result, unit_of
from .forms import ProductPlan
from .normal import NormalPlan, normal_plan
from .pack import pack_weight
from .plan import lead_of, passes_of_one, plan_rows, product_plan
from .rowwise import Read
from .schedule import schedule_dense


@dataclass(frozen=True)
class QuantizedPlan:
    """The plan of a product of words."""

    product: ProductPlan
    products: str  # of words, their kind

    def __str__(self) -> str:
        return f"{self.product}, of words of {self.word}"

    @property
    def word(self) -> int:
        """Levels of one."""
        return LEVELS_OF[self.products]

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the product of words that it is."""
        (x, _), (weight, _) = ops.dense.inputs[:2]
        depth = words_of(x[-1], self.word)
        inputs = [((*x[:-1], depth), "int32"), ((weight[0], depth), "int32")]
        out = (ops.dense.outputs[0][0], "int32")
        yield from unlike("products", self.products, products_as_packed(ops, cpu, x[-1]))
        alone = describe(ops.dense.name, "dense", ops.dense.attrs, inputs, [out])
        yield from self.product.faults(Ops([alone]), machine_of_words(cpu, self.products))


@dataclass(frozen=True)
class QuantizedNormalPlan:
    """Rows are normalised in floats, and multiplied as words: `floats` is a plan of as many."""

    floats: NormalPlan
    products: str

    def __str__(self) -> str:
        return f"{self.floats}, of words of {self.dense.word}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the product, and of the rows, which are as long as they are."""
        yield from self.dense.faults(ops, cpu)
        rows, (x, _) = self.floats.rows, ops.dense.inputs[0]
        tiles = (*rows.tiles, rows.height)
        of_words = machine_of_words(cpu, self.products)
        yield from self.floats.normal.faults_of(tiles, x[-1], of_words)

    @property
    def dense(self) -> QuantizedPlan:
        """Of the product alone."""
        return QuantizedPlan(self.floats.product, self.products)


def plan(ops: Ops, machine: Machine) -> QuantizedPlan:
    """That of a float product of as many words."""
    shape, _ = ops.dense.outputs[0]
    inputs = ops.dense.inputs[0][0][-1]
    products = products_as_packed(ops, machine, inputs)
    machine, depth = machine_of_words(machine, products), words_of(inputs, LEVELS_OF[products])
    rows = plan_rows(lead_of(shape), depth, shape[-1], "int32", machine)
    passes = passes_of_one(rows, depth, machine)
    found = product_plan(rows, depth, shape[-1], "int32", machine, "outputs", passes=passes)
    return QuantizedPlan(found, products)


def plan_normal(ops: Ops, machine: Machine) -> QuantizedNormalPlan:
    """That of rows of as many words that are normalised, and of the rows as floats."""
    (shape, _), depth = ops.dense.outputs[0], ops.dense.inputs[0][0][-1]
    products = products_as_packed(ops, machine, depth)
    words, machine = words_of(depth, LEVELS_OF[products]), machine_of_words(machine, products)
    return QuantizedNormalPlan(normal_plan(shape, words, "int32", machine, depth), products)


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
    units = ops.dense.outputs[0][0][-1]
    words = Words(x, len(x.shape) - 1, plan.products).stage()
    level = counted(only(x_zero), x.dtype, plan.products)
    found, exact = sums_of_words(in_tiles(words, plan.product.rows), weight, level, plan)
    scaled = Scaled(x_scale, w_scale, bias)
    unit = unit_of(found.sums, units)
    outputs = te.compute(found.sums.shape, lambda *i: scaled(exact(*i), unit(*i)), name="outputs")
    return Dense(found, outputs, result(plan.product.rows, outputs, units))


def sums_of_words(
    read: Read, weight: Tensor, level: PrimExpr, plan: QuantizedPlan
) -> tuple[Product, Read]:
    """The product of words, and its exact sums; `level` is what words hold where the model means
    zero.
    """
    depth = int(weight.shape[1]) - 1  # after the last word are the sums of the weights
    found = product(read, weight, "int32", plan.product, times=partial(dot, plan.products))
    return found, lambda *i: found.sums(*i) - weight(i[-3], depth, i[-1]) * level


def of_integers(
    found: tuple[Product, Read], bias: Tensor | None, units: int, plan: ProductPlan
) -> tuple[Tensor, Tensor]:
    """A product of words and its exact sums with a bias, in tiles and as they are stored."""
    product, exact = found
    unit = unit_of(product.sums, units)

    def output(*i: PrimExpr) -> PrimExpr:
        return exact(*i) if bias is None else exact(*i) + bias(unit(*i))

    outputs = te.compute(product.sums.shape, output, name="outputs")
    return outputs, result(plan.rows, outputs, units)


def compute_integers(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, ops: Ops, plan: QuantizedPlan
) -> Dense:
    """Levels around 0, whose sums stay in int32."""
    words = Words(x, len(x.shape) - 1, plan.products).stage()
    zero = counted(tir.const(0, "int32"), x.dtype, plan.products)
    found = sums_of_words(in_tiles(words, plan.product.rows), weight, zero, plan)
    units = ops.dense.outputs[0][0][-1]
    return Dense(found[0], *of_integers(found, bias, units, plan.product))


QUANTIZED_DENSE = Kernel(
    plan,
    compute,
    lambda sch, stages, plan: schedule_dense(sch, stages, plan.product),
    pack={"weight": pack},
)

INTEGER_DENSE = Kernel(
    plan,
    compute_integers,
    lambda sch, stages, plan: schedule_dense(sch, stages, plan.product),
    pack={"weight": pack},
)
