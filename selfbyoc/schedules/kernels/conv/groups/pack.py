"""How the weights of a grouped convolution lie where groups are its lanes."""

from __future__ import annotations

from .....tvm import te
from .....tvm.types import PrimExpr, Tensor
from ....steps.tensors import extents, or_zero
from ....steps.tiles import BLOCK, blocks_of
from .plan import GroupPlan


def pack(weight: Tensor, plan: GroupPlan) -> Tensor:
    """[O, I, H, W] -> [G/16, O/G, I, H, W, 16], zeros after the last group."""
    channels, inner, high, wide = extents(weight)
    each = channels // plan.groups
    blocks = blocks_of(plan.groups)

    def element(
        b: PrimExpr, o: PrimExpr, i: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        def read(group: PrimExpr) -> PrimExpr:
            return weight(group * each + o, i, y, x)

        return or_zero(b * BLOCK + lane, plan.groups, blocks * BLOCK, read, weight.dtype)

    return te.compute((blocks, each, inner, high, wide, BLOCK), element, f"{weight.op.name}_packed")
