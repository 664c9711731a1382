"""Register tiles in a schedule: the loops of one, and how its sums get into registers and out.

Every product here is such a tile, whatever its rows and its lanes are. A family says which loops
are around it, in which order, and which are inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...tvm.types import Block, Loop, Schedule
from .blocks import Facts
from .loops import Finish, start_sums, vectorize


def unroll_tile(sch: Schedule, outer: Sequence[Loop], inner: Sequence[Loop], lanes: int) -> int:
    """for outer: a tile of `inner`, its rows unrolled, the last of them in vectors; -> the unrolled
    loops around a vector.
    """
    sch.reorder(*outer, *inner)
    *rows, lane = inner
    for loop in rows:
        sch.unroll(loop)
    is_cut = lanes < int(sch.get(lane).extent) and int(sch.get(lane).extent) % lanes == 0
    vectorize(sch, lane, lanes)
    return len(rows) + is_cut


def sum_in_tile(
    sch: Schedule, block: Block, reduction: Sequence[Loop], inner: Sequence[Loop], lanes: int
) -> Finish:
    """tile = 0; for reduction: tile += ..."""
    unrolled = unroll_tile(sch, reduction, inner, lanes)
    return partial(start_sums, sch, block, reduction[0], unrolled)


def out_of_registers(sch: Schedule, sums: Block, parts: Block | None) -> tuple[Block, Block]:
    """The block that writes sums to memory, and that which adds in registers: all of a sum, or the
    `parts` that the first adds to what memory has of the others.
    """
    if parts is None:
        return sch.cache_write(sums, 0, "local"), sums
    sch.set_scope(parts, 0, "local")
    return sums, parts


def start_parts(sch: Schedule, block: Block, parts: Sequence[Loop]) -> list[Finish]:
    """What adds parts, if it does, is zero before their loop; its tile's rows are one loop."""
    return [partial(start_sums, sch, block, part, 1) for part in parts]


def weight_of(sums: Facts) -> str:
    """The packed weight that sums read along their lanes. (Folded steps of a sum read what they
    multiply it with along them, too; that is named first.)
    """
    *_, weight = sums.buffers_along(sums.spatial[-1])
    return weight
