"""Packed weights of products of rows."""

from __future__ import annotations

from typing import Any

from ...._tvm import te, tir
from ....language.types import Tensor
from ...steps.tiles import BLOCK
from .plan import blocks_of


def pack_weight(weight: Tensor, dtype: str | None = None) -> Tensor:
    """[units, in] -> [units/16, in, 16], zeros after the last unit: a cache line for each k."""
    units, k = (int(extent) for extent in weight.shape)
    blocks, dtype = blocks_of(units), dtype or str(weight.dtype)

    def element(b: Any, i: Any, lane: Any) -> Any:
        unit = b * BLOCK + lane
        if units == blocks * BLOCK:
            return weight(unit, i).astype(dtype)
        value = tir.if_then_else(unit < units, weight(unit, i), tir.const(0, weight.dtype))
        return value.astype(dtype)

    return te.compute((blocks, k, BLOCK), element, name=f"{weight.op.name}_packed")
