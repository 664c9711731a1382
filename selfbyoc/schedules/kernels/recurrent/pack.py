"""Packed weights of recurrent layers."""

from __future__ import annotations

from ....ops.cells import GATES
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, reduce_axes
from ...steps.tiles import BLOCK
from ..words import signed, word_of
from .plan import RecurrentPlan


def pack(weight: Tensor, plan: RecurrentPlan) -> Tensor:
    """[directions, gates * units, units] -> [directions, units/16, units, gates, 16]: what a step
    of k reads is in one place.
    """
    directions, _, units = extents(weight)

    def element(
        d: PrimExpr, block: PrimExpr, k: PrimExpr, gate: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        return weight(d, _row(units, block, gate, lane), k)

    shape = (directions, plan.blocks, units, GATES[plan.kind], BLOCK)
    return te.compute(shape, element, name="weight_packed")


def pack_levels(weight: Tensor, plan: RecurrentPlan) -> Tensor:
    """[directions, gates * units, units] of bytes -> [directions, units/16, units/word + 1, gates,
    16] of words, zeros after the last term; the last row has the sums of what a zero point is
    multiplied by.
    """
    directions, rows, units = extents(weight)
    (k,) = reduce_axes(k=units)

    def level(d: PrimExpr, row: PrimExpr, at: PrimExpr) -> PrimExpr:
        value = signed(weight(d, row, tir.Min(at, units - 1)), weight.dtype)
        return tir.if_then_else(at < units, value, 0)

    sums = te.compute(
        (directions, rows),
        lambda d, row: te.sum(signed(weight(d, row, k), weight.dtype), axis=k),
        name="weight_sums",
    )

    def element(
        d: PrimExpr, block: PrimExpr, i: PrimExpr, gate: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        row = _row(units, block, gate, lane)
        levels = [level(d, row, i * plan.word + n) for n in range(plan.word)]
        return tir.if_then_else(i < plan.depth, word_of(levels), sums(d, row))

    shape = (directions, plan.blocks, plan.depth + 1, GATES[plan.kind], BLOCK)
    return te.compute(shape, element, name="weight_packed")


def _row(units: int, block: PrimExpr, gate: PrimExpr, lane: PrimExpr) -> PrimExpr:
    """The weight's row of a lane. After the last unit come its copies, not zeros: the range of a
    state that is rounded is over whole blocks.
    """
    return gate * units + tir.Min(block * BLOCK + lane, units - 1)
