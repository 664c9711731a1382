"""The loops over tiles of rows: register tiles, groups of them that share a panel of a weight, and
which groups each core gets.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....tvm.types import Block, Loop, Schedule
from ...steps.blocks import Facts
from ...steps.registers import unroll_tile
from .forms import ProductPlan


@dataclass(frozen=True)
class Loops:
    """The loops of a tiled epilogue: those over passes, those that can run in parallel, and the two
    innermost ones.
    """

    passes: list[Loop]
    parallel: list[Loop]
    panel: Loop  # around all tiles that share a panel of columns
    tile: Loop

    @property
    def tasks(self) -> list[Loop]:
        """All that can run in parallel, if no pass waits for the one before it."""
        return [*self.passes, *self.parallel]


def tile_rows(sch: Schedule, outputs: Block, plan: ProductPlan) -> Loops:
    """Register tiles of [outer, tile, block, row, lane], in groups of rows times panels of columns.

    Panels outermost, so that each core reads its own share of the weight; or groups of rows, which
    then stay in L2; or passes over the weight by rows that stay in L3.
    """
    count = len(Facts(sch, outputs).axes)
    *outer, tile, blocks, row, lane = list(sch.get_loops(outputs))[-count:]
    panel, within = sch.split(blocks, [None, plan.wide])
    passes: list[Loop] = []
    if plan.passes:
        one, tile = sch.split(tile, [plan.passes, None])
        passes, outer = [*outer, one], []
    task, tile = sch.split(tile, [None, plan.group])
    around = [*outer, task, panel] if plan.rows_first else [panel, *outer, task]
    unroll_tile(sch, [*passes, *around, tile], [row, within, lane], plan.lanes)
    return Loops(passes, around[:-1] if plan.melted else around, around[-1], tile)
