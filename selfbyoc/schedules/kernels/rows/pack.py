"""Packed weights of products of rows."""

from __future__ import annotations

from ....tvm import te
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, or_zero
from ...steps.tiles import BLOCK
from ..bfloat16 import weight_words
from .forms import ProductPlan, paired_blocks


def pack_weight(weight: Tensor, plan: object) -> Tensor:
    """[units, in] -> [units/16, in, 16], zeros after the last unit: a cache line for each k. Any
    plan of floats reads it.
    """
    units, k = extents(weight)
    blocks = paired_blocks(units)

    def element(b: PrimExpr, i: PrimExpr, lane: PrimExpr) -> PrimExpr:
        return or_zero(
            b * BLOCK + lane, units, blocks * BLOCK, lambda unit: weight(unit, i), weight.dtype
        )

    return te.compute((blocks, k, BLOCK), element, name=f"{weight.op.name}_packed")


def pack_factor(weight: Tensor, plan: ProductPlan) -> Tensor:
    """As its plan multiplies it: as it is, or in words, half as many for each unit."""
    return pack_weight(weight_words(weight) if plan.products else weight, plan)
