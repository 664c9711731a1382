"""The weights of a Winograd convolution, transformed and packed ahead of time."""

from __future__ import annotations

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, or_zero
from ...steps.tiles import BLOCK
from .matrices import matrices, times
from .plan import WinogradPlan


def pack(weight: Tensor, plan: WinogradPlan) -> Tensor:
    """[O, I, r, r] -> G w G^T as [m + r - 1, m + r - 1, O/16, I, 16]."""
    out, inner, window, _ = extents(weight)
    _, g, _ = matrices(plan.m, window)
    size = plan.tiling.size

    def half(e: PrimExpr, o: PrimExpr, i: PrimExpr, x: PrimExpr) -> PrimExpr:
        return times(g, e, lambda y: weight(o, i, y, x))

    columns = te.compute((size, out, inner, window), half, name=f"{weight.op.name}_columns")

    def whole(e: PrimExpr, f: PrimExpr, b: PrimExpr, i: PrimExpr, lane: PrimExpr) -> PrimExpr:
        def value(o: PrimExpr) -> PrimExpr:
            return times(g, f, lambda x: columns(e, tir.Min(o, out - 1), i, x))

        return or_zero(b * BLOCK + lane, out, plan.out_blocks * BLOCK, value)

    shape = (size, size, plan.out_blocks, inner, BLOCK)
    return te.compute(shape, whole, name=f"{weight.op.name}_packed")
