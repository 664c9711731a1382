"""Packed weights of recurrent layers."""

from __future__ import annotations

from ...._tvm import te, tir
from ....language.types import Expr, Tensor
from ....ops.cells import GATES
from ...steps.tensors import extents, or_zero, reduce_axes
from ...steps.tiles import BLOCK
from ..words import signed, word_of
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


def pack_levels(weight: Tensor, plan: RecurrentPlan) -> Tensor:
    """[directions, gates * units, units] of bytes -> [directions, units/16, units/word + 1, gates,
    16] of words, zeros after the last unit; the last row has the sums of what a zero point is
    multiplied by.
    """
    directions, _, units = extents(weight)
    (k,) = reduce_axes(k=units)
    gates, word = GATES[plan.kind], plan.word

    def level(d: Expr, unit: Expr, gate: Expr, at: Expr) -> Expr:
        row = gate * units + tir.Min(unit, units - 1)
        value = signed(weight(d, row, tir.Min(at, units - 1)), weight.dtype)
        return tir.if_then_else(tir.all(unit < units, at < units), value, 0)

    sums = te.compute(
        (directions, gates * units),
        lambda d, row: te.sum(signed(weight(d, row, k), weight.dtype), axis=k),
        name="weight_sums",
    )

    def element(d: Expr, block: Expr, i: Expr, gate: Expr, lane: Expr) -> Expr:
        unit = block * BLOCK + lane
        total = sums(d, gate * units + tir.Min(unit, units - 1))
        levels = [level(d, unit, gate, i * word + n) for n in range(word)]
        return tir.if_then_else(i < plan.depth, word_of(levels), total)

    shape = (directions, plan.blocks, plan.depth + 1, gates, BLOCK)
    return te.compute(shape, element, name="weight_packed")
