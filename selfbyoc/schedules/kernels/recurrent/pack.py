"""Packed weights of recurrent layers."""

from __future__ import annotations

from ...._tvm import te
from ....language.types import Expr, Tensor
from ....ops.cells import GATES
from ...steps.tensors import extents, or_zero
from ...steps.tiles import BLOCK
from .plan import RecurrentPlan


def pack(weight: Tensor, plan: RecurrentPlan) -> Tensor:
    """[directions, gates * units, units] -> [directions, units/16, units, gates, 16], zeros after
    the last unit: what a step of k reads is in one place.
    """
    directions, _, units = extents(weight)

    def element(d: Expr, block: Expr, k: Expr, gate: Expr, lane: Expr) -> Expr:
        unit = block * BLOCK + lane
        return or_zero(
            unit, units, plan.blocks * BLOCK, lambda j: weight(d, gate * units + j, k), weight.dtype
        )

    shape = (directions, plan.blocks, units, GATES[plan.kind], BLOCK)
    return te.compute(shape, element, name="weight_packed")
