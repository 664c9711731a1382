"""A product of a chain: sums in registers, operands fetched by all threads in chunks of terms."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...tvm import region_buffer
from ...tvm.types import Block, Loop, Schedule
from ..steps.blocks import Facts
from .banks import Columns
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
) -> dict[str, Columns]:
    """Under each thread's part of the result: clear its sums; for each chunk of the terms fetch,
    then multiply. `fetches` are the blocks that compute an operand for it alone -> how threads read
    the columns of what is fetched.
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
    found: dict[str, Columns] = {}
    for fetch, column in _fetched(sch, Facts(sch, block), fetches):
        sch.compute_at(fetch, chunk)
        spread(sch, fetch, [], _in_memory_order(sch, fetch, axis_loops(sch, fetch, chunk)), plan)
        if column is not None and shape.wide > 1:
            found[Facts(sch, fetch).name] = Columns(column, shape.wide, shape.columns)
    sch.decompose_reduction(block, chunk)
    return found


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
