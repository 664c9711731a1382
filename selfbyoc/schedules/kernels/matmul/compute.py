"""A product of matrices that are both computed, in register tiles.

panels  [batch of y, panel, k, column]      y, where it does not lie so
sums    [batch, tile, panel, row, column]   over k, of x * panels
result  [batch, row, column]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....graph import OpCall
from ....language.decisions import is_symbolic
from ....ops.kind import broadcast
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, or_zero, reduce_axes, split_index
from .plan import MatmulPlan


@dataclass(frozen=True)
class MatmulStages:
    """The stages: tensors, and while scheduling their blocks."""

    panels: Tensor | None
    sums: Tensor
    result: Tensor


def batch_matmul(inputs: Sequence[Tensor], call: OpCall, plan: MatmulPlan) -> MatmulStages:
    """x @ y of the last two axes, either of which may be transposed."""
    x, y = inputs
    turned = call.attrs["transpose_a"]
    panels = _panels(y, call, plan) if plan.packed else None
    lead = len(plan.batch)
    (k,) = reduce_axes(k=plan.depth)

    def right(batch: Sequence[PrimExpr], panel: PrimExpr, column: PrimExpr) -> PrimExpr:
        if panels is not None:
            return broadcast(panels, (*batch, panel, k, column))
        return broadcast(y, (*batch, k, panel * plan.width + column))

    def summed(*i: PrimExpr) -> PrimExpr:
        batch, (tile, panel, row, column) = i[:lead], i[lead:]
        at = tile * plan.height + row
        if plan.tiles * plan.height != plan.rows or is_symbolic(plan.rows):
            at = tir.Min(at, plan.rows - 1)
        left = broadcast(x, (*batch, k, at) if turned else (*batch, at, k))
        return te.sum(left * right(batch, panel, column), axis=k)

    tiles = (*plan.batch, plan.tiles, plan.panels, plan.height, plan.width)
    sums = te.compute(tiles, summed, name=f"{call.name}_sums")

    def element(*i: PrimExpr) -> PrimExpr:
        *batch, row, column = i
        (tile, row), (panel, column) = (
            split_index(row, plan.height),
            split_index(column, plan.width),
        )
        return sums(*batch, tile, panel, row, column)

    return MatmulStages(panels, sums, te.compute(call.outputs[0].shape, element, name=call.name))


def _panels(y: Tensor, call: OpCall, plan: MatmulPlan) -> Tensor:
    """The right side as tiles read it: the columns of a panel together."""
    *batch, _, _ = extents(y)
    turned = call.attrs["transpose_b"]

    def element(*i: PrimExpr) -> PrimExpr:
        *at, panel, k, lane = i

        def read(column: PrimExpr) -> PrimExpr:
            return y(*at, column, k) if turned else y(*at, k, column)

        padded = plan.panels * plan.width
        return or_zero(panel * plan.width + lane, plan.columns, padded, read)

    shape = (*batch, plan.panels, plan.depth, plan.width)
    return te.compute(shape, element, name=f"{call.name}_panels")
