"""Two products of the same rows, one of which gates the other: activation(x @ gate) * (x @ up).

A tile of both is summed one after the other, and multiplied where it lies: nothing but the result
is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....codegen.info.op_record import TensorInfo
from ....codegen.info.ops import Ops
from ....machine import Machine
from ....tvm import te
from ....tvm.types import PrimExpr, Schedule, Tensor
from ...steps.faults import Faults
from .alone import plan_alone
from .compute import Product, activation, factors, in_tiles, product, result, unit_of
from .forms import ProductPlan
from .halves import products_of
from .pack import pack_factor
from .product import product_at
from .schedule import in_parallel, prepare, store
from .tiles import tile_rows

WEIGHTS = ("gate", "up")


@dataclass(frozen=True)
class GatedPlan:
    """Both products are planned alike."""

    product: ProductPlan

    def __str__(self) -> str:
        return f"two products: {self.product}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of each of them."""
        for dense in ops.of("dense"):
            products = products_of(ops, ops.packing(dense, 1).arg, cpu)
            yield from (f"{dense.name}: {t}" for t in self.product.faults_of(dense, cpu, products))


@dataclass(frozen=True)
class Gated:
    """The gate's product and the other one, what is made of both in tiles, its real elements; and
    what the gate makes, where that is computed first, in memory.
    """

    products: tuple[Any, Any]
    outputs: Tensor
    result: Tensor
    first: Tensor | None = None


def gate_first(sums: Tensor, ops: Ops) -> Tensor:
    """What the gate makes, in tiles."""
    of_gate = activation(ops)
    return te.compute(sums.shape, lambda *i: of_gate(sums(*i)), name="gate_outputs")


def gated(
    sums: Sequence[Tensor], biases: Sequence[Tensor | None], ops: Ops, out: TensorInfo
) -> Tensor:
    """The tiles of the result."""
    of_gate, unit = activation(ops), unit_of(sums[0], out.shape[-1])

    def element(*i: PrimExpr) -> PrimExpr:
        gate, up = (
            s(*i).astype(out.dtype) if b is None else s(*i).astype(out.dtype) + b(unit(*i))
            for s, b in zip(sums, biases, strict=True)
        )
        return of_gate(gate) * up

    return te.compute(sums[0].shape, element, name="outputs")


def plan(ops: Ops, machine: Machine) -> GatedPlan:
    """As of one product of as many units."""
    return GatedPlan(plan_alone(ops, WEIGHTS[0], machine))


def compute(
    x: Tensor,
    gate: Tensor,
    up: Tensor,
    gate_bias: Tensor | None = None,
    up_bias: Tensor | None = None,
    *,
    ops: Ops,
    plan: GatedPlan,
) -> Gated:
    """Both products of the same rows."""
    out, one = ops.dense.outputs[0], plan.product
    read = in_tiles(factors(x, one), one.rows)
    made: list[Product] = [
        product(read, weight, out[1], one, f"{name}_products")
        for name, weight in zip(WEIGHTS, (gate, up), strict=True)
    ]
    outputs = gated([p.sums for p in made], (gate_bias, up_bias), ops, out)
    return Gated((made[0], made[1]), outputs, result(one.rows, outputs, out[0][-1]))


def schedule(sch: Schedule, stages: Gated, plan: GatedPlan) -> None:
    """Register tiles, spread over tasks of rows and panels of columns."""
    prepare(sch, stages, plan.product.lanes)
    loops = tile_rows(sch, stages.outputs, plan.product)
    finish = [last for p in stages.products for last in product_at(sch, p, loops, plan.product)]
    store(sch, stages.result, stages.outputs, loops, plan.product)
    in_parallel(sch, loops.tasks, plan.product)
    for last in finish:
        last()


def pack(weight: Tensor, plan: GatedPlan) -> Tensor:
    """As a product's."""
    return pack_factor(weight, plan.product)
