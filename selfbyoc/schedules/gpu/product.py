"""A product of a chain: sums in registers, operands fetched by all threads in chunks of terms."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..._tvm import region_buffer, tir
from ...language.types import Block, Loop, Schedule
from ..steps.blocks import Facts
from .chain import index_of, operands, plain
from .plan import BlockPlan, Tile
from .threads import axis_loops, fused, spread


def sum_in_registers(
    sch: Schedule,
    block: Block,
    lane: Loop,
    plan: BlockPlan,
    shape: Tile,
    fetches: Collection[str],
) -> None:
    """Under each thread's part of the result: clear its sums; for each chunk of the terms fetch,
    then multiply. `fetches` are the blocks that compute an operand for it alone.
    """
    # 1. Chunks are outside of the tile, its sums are unrolled: only so they stay in registers.
    sch.compute_at(block, lane)
    facts, loops = Facts(sch, block), axis_loops(sch, block, lane)
    terms = [loops[a.position] for a in facts.reduction if a.position in loops]
    sums = [loops[a.position] for a in facts.spatial if a.position in loops]
    whole = fused(sch, terms) if terms else sch.add_unit_loop(block)
    chunk, term = sch.split(whole, [None, shape.chunk])
    sch.reorder(chunk, term, *sums)
    for loop in sums:
        sch.unroll(loop)
    # 2. Each chunk by all threads: neighbours in memory by neighbours.
    for fetch, column in _fetched(sch, Facts(sch, block), fetches):
        sch.compute_at(fetch, chunk)
        spread(sch, fetch, [], _in_memory_order(sch, fetch, axis_loops(sch, fetch, chunk)), plan)
        _lay_out(sch, fetch, column, shape)
    sch.decompose_reduction(block, chunk)


def _fetched(
    sch: Schedule, facts: Facts, fetches: Collection[str]
) -> list[tuple[Block, int | None]]:
    """The blocks that fetch operands, and the dimension along which each has the columns."""
    last = max(a.position for a in facts.spatial if a.extent > 1)
    made = {str(region_buffer(p.stmt.writes[0]).name): p for p in facts.producers}
    found: list[tuple[Block, int | None]] = []
    for number, region in enumerate(facts.stmt.reads):
        axes = [plain(index_of(dim), facts) for dim in region.region]
        column = next((n for n, a in enumerate(axes) if a and a.position == last), None)
        maker = made.get(str(region_buffer(region).name))
        if maker is None:
            read = sch.cache_read(facts.block, number, "shared", [facts.block])
            found.append((read, column))
        elif maker.name in fetches:
            found.append((maker.block, column))
    return found


def _lay_out(sch: Schedule, fetch: Block, column: int | None, shape: Tile) -> None:
    """Columns of one thread a line apart, so that a warp reads neighbours; lines of odd length, so
    that what reads down one meets all banks.
    """
    dims = len(region_buffer(sch.get(fetch).writes[0]).shape)
    wide = shape.wide
    if column is None or wide == 1:
        pad(sch, fetch, dims - 2)
        return

    def lines(*i: Any) -> list[Any]:
        rest = [index for n, index in enumerate(i) if n != column]
        once, at = tir.floordiv(i[column], shape.columns), tir.floormod(i[column], shape.columns)
        return [once, *rest, tir.floormod(at, wide) * shape.across + tir.floordiv(at, wide)]

    sch.transform_layout(fetch, ("write", 0), lines, assume_injective_transform=True)
    pad(sch, fetch, dims - 1)


def pad(sch: Schedule, block: Block, dim: int) -> None:
    """Make the distance between neighbours along a dimension odd: no two of 32 in one bank."""
    if dim >= 0:
        sch.storage_align(block, 0, dim, 2, 1)


def _in_memory_order(sch: Schedule, fetch: Block, loops: Mapping[int, Loop]) -> list[Loop]:
    """The loops of a fetch as what it reads lies in memory."""
    facts = Facts(sch, fetch)
    read = max(operands(facts).values(), key=len, default=[])
    order = [axis.position for index in read if (axis := plain(index, facts)) is not None]
    rest = [position for position in loops if position not in order]
    found = [loops[position] for position in (*rest, *order) if position in loops]
    if len(found) > 1:
        sch.reorder(*found)
    return found
