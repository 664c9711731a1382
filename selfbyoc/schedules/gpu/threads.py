"""The loops of one stage, shared out among the threads of a block."""

from __future__ import annotations

from collections.abc import Sequence

from ...tvm.types import Block, Loop, Schedule
from ..steps.blocks import Facts
from ..steps.indices import Axis
from .chain import Stage
from .plan import BlockPlan, Tile

X, Y = "threadIdx.x", "threadIdx.y"


def axis_loops(sch: Schedule, block: Block, at: Loop | None) -> dict[int, Loop]:
    """The loop of each axis of a block, under the loop `at`; axes of one element have none."""
    loops = list(sch.get_loops(block))
    if at is not None:
        first = next(n for n, loop in enumerate(loops) if sch.get(loop).same_as(sch.get(at)))
        loops = loops[first + 1 :]
    facts = Facts(sch, block)
    found: dict[int, Loop] = {}
    for axis, used in zip(facts.axes, facts.variables, strict=True):
        for loop in loops:
            if any(v.same_as(sch.get(loop).loop_var) for v in used):
                found[axis.position] = loop
    return found


def rows_and_columns(
    sch: Schedule, stage: Stage, block: Block, at: Loop, tiled: Axis | None
) -> tuple[list[Loop], list[Loop]]:
    """The loops of a block over its rows and over its columns."""
    loops = axis_loops(sch, block, at)
    rows = [loops[tiled.position]] if tiled and tiled.position in loops else []
    mine = set(stage.rows)
    reduced = {axis.position for axis in Facts(sch, block).reduction}
    return rows, [loop for n, loop in loops.items() if n not in mine | reduced]


def fused(sch: Schedule, loops: Sequence[Loop]) -> Loop:
    """Several loops as one."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def spread(
    sch: Schedule, block: Block, rows: Sequence[Loop], columns: Sequence[Loop], plan: BlockPlan
) -> Loop:
    """Elements among all threads, neighbours to neighbours -> the loop over lanes. Rows to groups
    where a row fills the lanes.
    """
    across = fused(sch, columns) if columns else None
    if across is None or not rows or int(sch.get(across).extent) * 2 < plan.lanes:
        every = [*rows, *([across] if across is not None else [])]
        whole = fused(sch, every) if every else sch.add_unit_loop(block)
        _, group, lane = sch.split(whole, [None, plan.groups, plan.lanes])
    else:
        outer, group = sch.split(fused(sch, rows), [None, plan.groups])
        inner, lane = sch.split(across, [None, plan.lanes])
        sch.reorder(outer, group, inner, lane)
    _bind(sch, group, lane, plan)
    return lane


def _bind(sch: Schedule, group: Loop, lane: Loop, plan: BlockPlan) -> None:
    if plan.groups > 1:
        sch.bind(group, Y)
    sch.bind(lane, X)


def reduce_rows(
    sch: Schedule, block: Block, rows: Sequence[Loop], terms: Sequence[Loop], plan: BlockPlan
) -> None:
    """Each row to the lanes of one group, which sum what they found among themselves. As many
    turns for each group: there are barriers in them.
    """
    if not terms:
        spread(sch, block, rows, [], plan)
        return
    _, lane = sch.split(fused(sch, terms), [None, plan.lanes])
    if rows:
        _, group = sch.split(rows[0], [None, plan.groups])
        if plan.groups > 1:
            sch.bind(group, Y)
    sch.bind(lane, X)


def tile(
    sch: Schedule, rows: Sequence[Loop], columns: Sequence[Loop], plan: BlockPlan, shape: Tile
) -> Loop:
    """Register tiles of rows and columns -> the loop over lanes.

    A group has whole lines of lanes if the columns are many; of few columns, several rows.
    """
    column = max(columns, key=lambda loop: int(sch.get(loop).extent))
    before = [loop for loop in columns if loop is not column]
    lanes = min(shape.across, plan.lanes)  # across; the other ones are down
    groups = shape.across // lanes
    passes, right, to_right, wide = sch.split(column, [None, groups, lanes, shape.wide])
    if not rows:
        sch.reorder(*before, passes, right, to_right, wide)
        _bind(sch, right, to_right, plan)
        return to_right
    factors = [plan.groups // groups, plan.lanes // lanes, shape.high]
    down, below, high = sch.split(rows[0], factors)
    sch.reorder(*before, passes, down, right, below, to_right, high, wide)
    group, lane = sch.fuse(down, right), sch.fuse(below, to_right)
    _bind(sch, group, lane, plan)
    return lane
