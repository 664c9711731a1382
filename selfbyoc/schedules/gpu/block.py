"""A chain as one kernel: a thread block computes all stages of its rows, in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...machine.gpu import Gpu
from ...tvm.types import Block, Loop, Schedule
from ..steps.blocks import Facts
from .banks import Columns, lay_out
from .chain import PRODUCT, ROW, Chain, Stage
from .plan import SUMS, BlockPlan, epilogues, fetches, is_again
from .product import sum_in_registers
from .threads import axis_loops, fused, reduce_rows, rows_and_columns, spread, tile


@dataclass(frozen=True)
class Nest:
    """A stage as threads share it: the block that stores its elements, and the sums that it takes
    from registers.
    """

    stage: Stage
    block: Block
    sums: Stage | None = None


def melt_for_gpu(sch: Schedule, chain: Chain, plan: BlockPlan, gpu: Gpu) -> None:
    """All stages of a chain under one loop over thread blocks."""
    # 1. Sums in registers, under the block that stores them or what is made of them.
    fetched = fetches(chain)
    again = [s for s in chain.stages if is_again(s, plan)]
    for stage in again:
        sch.compute_inline(stage.block.block)
    stages = [s for s in chain.stages if s not in again]
    moved, nests = _nests(sch, stages, fetched)
    # 2. The rows of the result in blocks, and all else under the loop over them, last ones first,
    # as each must find its readers there.
    result = nests[-1]
    at = _grid(sch, chain, result, plan)
    for block in reversed(moved):
        _move(sch, block, at)
    # 3. The threads of each.
    columns: dict[str, Columns] = {}
    for nest in nests:
        columns |= _share_out(sch, chain, nest, at, plan, fetched)
    # 4. Where all this lies.
    lay_out(sch, plan, columns, gpu.shared_bytes)


def _nests(
    sch: Schedule, stages: Sequence[Stage], fetched: set[str]
) -> tuple[list[Block], list[Nest]]:
    """The blocks to move, in program order, and the nests for threads, the result's last."""
    after = epilogues(stages)
    moved: list[Block] = []
    sums: dict[str, Stage] = {}  # by the stage that reads them
    nests: list[Nest] = []
    for stage in stages:
        block = stage.block.block
        moved.append(block)
        reader = after.get(stage.name)
        if reader is not None:
            sch.set_scope(block, 0, "local")
            sums[reader] = stage
        elif stage.kind in SUMS:
            stored = sch.cache_write(block, 0, "local")
            moved.append(stored)
            nests.append(Nest(stage, stored, stage))
        elif stage.name not in fetched:
            nests.append(Nest(stage, block, sums.get(stage.name)))
    return moved[:-1], nests


def _grid(sch: Schedule, chain: Chain, result: Nest, plan: BlockPlan) -> Loop:
    """The result's rows, and columns if blocks share these, in blocks -> the loop over blocks."""
    loops = axis_loops(sch, result.block, None)
    outer = [loop for loop in sch.get_loops(result.block) if int(sch.get(loop).extent) == 1]
    outer += [loops[n] for n in chain.rows if n != chain.tiled]
    inner = []
    tiled = chain.tiled_axis(result.stage)
    if tiled is not None:
        block, row = sch.split(loops[tiled.position], [None, plan.rows])
        outer.append(block)
        inner.append(row)
    if plan.columns:
        across, column = sch.split(loops[result.stage.columns[-1].position], [None, plan.columns])
        outer.append(across)
        inner.append(column)
    if outer:
        sch.reorder(*outer, *inner)
    at = fused(sch, outer) if outer else sch.add_unit_loop(sch.get_loops(result.block)[0])
    sch.bind(at, "blockIdx.x")
    return at


def _move(sch: Schedule, block: Block, at: Loop) -> None:
    """A block under the loop over thread blocks, what it computes in their memory."""
    facts = Facts(sch, block)
    if facts.in_scope("global"):
        sch.set_scope(block, 0, "shared")
    sch.compute_at(block, at)


def _share_out(
    sch: Schedule, chain: Chain, nest: Nest, at: Loop, plan: BlockPlan, fetched: set[str]
) -> dict[str, Columns]:
    """The threads of a nest -> how they read the columns of what they fetch."""
    stage, tiled = nest.stage, chain.tiled_axis(nest.stage)
    rows, columns = rows_and_columns(sch, stage, nest.block, at, tiled)
    if stage.kind == ROW:
        facts, loops = Facts(sch, nest.block), axis_loops(sch, nest.block, at)
        terms = [loops[a.position] for a in facts.reduction if a.position in loops]
        reduce_rows(sch, nest.block, rows, terms, plan)
    elif nest.sums is not None and nest.sums.kind == PRODUCT:
        shape = plan.tiles[nest.sums.name]
        lane = tile(sch, rows, columns, plan, shape)
        return sum_in_registers(sch, nest.sums.block.block, lane, plan, shape, fetched)
    else:
        lane = spread(sch, nest.block, rows, columns, plan)
        if nest.sums is not None:
            sum_one(sch, nest.sums.block.block, lane)
    return {}


def sum_one(sch: Schedule, block: Block, lane: Loop) -> None:
    """A sum of each thread's own, in a register."""
    sch.compute_at(block, lane)
    loops, facts = axis_loops(sch, block, lane), Facts(sch, block)
    terms = [loops[a.position] for a in facts.reduction if a.position in loops]
    sch.reorder(*terms, *(loops[a.position] for a in facts.spatial if a.position in loops))
