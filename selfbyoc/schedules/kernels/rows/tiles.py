"""The loops over tiles of rows: register tiles, groups of them that share a panel of a weight, and
which groups each core gets.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....language.types import Block, Loop, Schedule
from ...steps.blocks import Facts
from ...steps.loops import vectorize
from .forms import ProductPlan


@dataclass(frozen=True)
class Loops:
    """The loops of a tiled epilogue: those that can run in parallel, and the two innermost ones."""

    parallel: list[Loop]
    panel: Loop  # around all tiles that share a panel of columns
    tile: Loop


def tile_rows(sch: Schedule, outputs: Block, plan: ProductPlan) -> Loops:
    """Register tiles of [outer, tile, block, row, lane], in groups of rows times panels of columns.

    Panels outermost, so that each core reads its own share of the weight; or groups of rows, which
    then stay in L2.
    """
    count = len(Facts(sch, outputs).axes)
    *outer, tile, blocks, row, lane = list(sch.get_loops(outputs))[-count:]
    task, tile = sch.split(tile, [None, plan.group])
    panel, within = sch.split(blocks, [None, plan.wide])
    around = [*outer, task, panel] if plan.rows_first else [panel, *outer, task]
    sch.reorder(*around, tile, row, within, lane)
    for loop in (row, within):
        sch.unroll(loop)
    vectorize(sch, lane, plan.lanes)
    return Loops(around[:-1] if plan.melted else around, around[-1], tile)
