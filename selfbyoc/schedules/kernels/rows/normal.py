"""The plan of rows that are normalised and then multiplied."""

from __future__ import annotations

from dataclasses import dataclass

from ....codegen.info.ops import Ops
from ....machine import Machine
from ....tvm.types import Shape
from ...steps.faults import Faults
from .forms import ProductPlan
from .layout import Rows
from .plan import lead_of, melted_tiles, plan_rows, product_plan
from .rowwise import RowwisePlan, rowwise_plan


@dataclass(frozen=True)
class NormalPlan:
    """Rows are normalised, then multiplied in tiles."""

    normal: RowwisePlan
    product: ProductPlan

    def __str__(self) -> str:
        where = "in front of its task" if self.product.melted else "first"
        return f"{self.product}; normalised {where}: {self.normal}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of both plans."""
        yield from self.product.faults(ops, cpu)
        rows = (*self.rows.tiles, self.rows.height)
        yield from self.normal.faults_of(rows, ops.dense.inputs[0][0][-1], cpu)

    @property
    def rows(self) -> Rows:
        """How the rows lie."""
        return self.product.rows


def normal_plan(
    shape: Shape,
    depth: int,
    dtype: str,
    cpu: Machine,
    count: int | None = None,
    halves: bool = False,
) -> NormalPlan:
    """Of a result of this shape, summed over `depth` in `dtype`, of rows of as many elements, or of
    `count`; `halves`: by a weight of these, which become floats. Where every core has rows of its
    own, as the weight stays in L2, a task normalises its rows itself.
    """
    units = shape[-1]
    rows = plan_rows(lead_of(shape), depth, units, dtype, cpu, halves=halves)
    melted = melted_tiles(rows, depth, units, cpu)
    product = product_plan(rows, depth, units, dtype, cpu, "outputs", melted, halves=halves)
    tiles = (*rows.tiles, rows.height)
    normal = rowwise_plan(tiles, depth if count is None else count, cpu, within=bool(melted))
    return NormalPlan(normal, product)
