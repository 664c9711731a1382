"""The weights of a Winograd convolution, transformed and packed ahead of time."""

from __future__ import annotations

from typing import Any

from ...._tvm import te, tir
from ....language.types import Tensor
from ...steps.tiles import BLOCK
from .matrices import matrices, times
from .plan import WinogradPlan


def pack(weight: Tensor, plan: WinogradPlan) -> Tensor:
    """[O, I, r, r] -> G w G^T as [m + r - 1, m + r - 1, O/16, I, 16]."""
    out, inner, window, _ = (int(extent) for extent in weight.shape)
    _, g, _ = matrices(plan.m, window)
    size = plan.tiling.size

    def half(e: Any, o: Any, i: Any, x: Any) -> Any:
        return times(g, e, lambda y: weight(o, i, y, x))

    columns = te.compute((size, out, inner, window), half, name=f"{weight.op.name}_columns")

    def whole(e: Any, f: Any, b: Any, i: Any, lane: Any) -> Any:
        o = b * BLOCK + lane
        value = times(g, f, lambda x: columns(e, tir.Min(o, out - 1), i, x))
        return (
            value if out % BLOCK == 0 else tir.if_then_else(o < out, value, tir.const(0, "float32"))
        )

    shape = (size, size, plan.out_blocks, inner, BLOCK)
    return te.compute(shape, whole, name=f"{weight.op.name}_packed")
