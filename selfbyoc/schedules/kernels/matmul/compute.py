"""A product of matrices that are both computed, in register tiles.

panels  [batch of y, panel, k, column]      y, where it does not lie so
sums    [batch, tile, panel, row, column]   over k, of x * panels
result  [batch, row, column]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....graph import OpCall
from ....language.decisions import is_symbolic
from ....ops.kind import broadcast
from ....tvm import te, tir
from ....tvm.types import PrimExpr, Shape, Tensor
from ...steps.tensors import View, or_zero, reduce_axes, split_index
from .plan import MatmulPlan

Times = Callable[[PrimExpr, PrimExpr], PrimExpr]


@dataclass(frozen=True)
class MatmulStages:
    """The stages: tensors, and while scheduling their blocks. `left` and `right` are operands that
    are made first, of levels.
    """

    panels: Tensor | None
    sums: Tensor
    result: Tensor
    left: Tensor | None = None
    right: Tensor | None = None


@dataclass(frozen=True)
class Sides:
    """What a product reads: x, y, and whether each is transposed."""

    x: Tensor | View
    y: Tensor | View
    turned_x: bool
    turned_y: bool


def batch_matmul(inputs: Sequence[Tensor], call: OpCall, plan: MatmulPlan) -> MatmulStages:
    """x @ y of the last two axes, either of which may be transposed."""
    x, y = inputs
    sides = Sides(x, y, call.attrs["transpose_a"], call.attrs["transpose_b"])
    panels = panels_of(sides, call.name, plan) if plan.packed else None
    sums = sums_of(sides, panels, call.name, plan)
    return MatmulStages(panels, sums, result_of(sums, call.outputs[0].shape, call.name, plan))


def sums_of(
    sides: Sides, panels: Tensor | None, name: str, plan: MatmulPlan, times: Times = operator.mul
) -> Tensor:
    """In tiles; of a product that is `times`."""
    lead = len(plan.batch)
    (k,) = reduce_axes(k=plan.depth)

    def right(batch: Sequence[PrimExpr], panel: PrimExpr, column: PrimExpr) -> PrimExpr:
        if panels is not None:
            return broadcast(panels, (*batch, panel, k, column), own=3)
        return broadcast(sides.y, (*batch, k, panel * plan.width + column))

    def summed(*i: PrimExpr) -> PrimExpr:
        batch, (tile, panel, row, column) = i[:lead], i[lead:]
        at = tile * plan.height + row
        if plan.tiles * plan.height != plan.rows or is_symbolic(plan.rows):
            at = tir.Min(at, plan.rows - 1)
        left = broadcast(sides.x, (*batch, k, at) if sides.turned_x else (*batch, at, k))
        return te.sum(times(left, right(batch, panel, column)), axis=k)

    tiles = (*plan.batch, plan.tiles, plan.panels, plan.height, plan.width)
    return te.compute(tiles, summed, name=f"{name}_sums")


def result_of(
    sums: Tensor,
    shape: Shape,
    name: str,
    plan: MatmulPlan,
    made: Callable[[PrimExpr], PrimExpr] = lambda value: value,
) -> Tensor:
    """The real elements, as they are `made` of their sums."""

    def element(*i: PrimExpr) -> PrimExpr:
        *batch, row, column = i
        (tile, row), (panel, column) = (
            split_index(row, plan.height),
            split_index(column, plan.width),
        )
        return made(sums(*batch, tile, panel, row, column))

    return te.compute(shape, element, name=name)


def panels_of(sides: Sides, name: str, plan: MatmulPlan) -> Tensor:
    """The right side as tiles read it: the columns of a panel together."""
    y = sides.y
    *batch, _, _ = (int(extent) for extent in y.shape)

    def element(*i: PrimExpr) -> PrimExpr:
        *at, panel, k, lane = i

        def read(column: PrimExpr) -> PrimExpr:
            return y(*at, column, k) if sides.turned_y else y(*at, k, column)

        padded = plan.panels * plan.width
        return or_zero(panel * plan.width + lane, plan.columns, padded, read, y.dtype)

    shape = (*batch, plan.panels, plan.depth, plan.width)
    return te.compute(shape, element, name=f"{name}_panels")
