"""Reductions of an attention in registers, under a loop of the block that they belong to."""

from __future__ import annotations

from ....tvm import tir
from ....tvm.types import Block, Loop, Schedule
from ...steps.loops import Finish, start_sums
from ...steps.registers import sum_in_tile, unroll_tile
from ...steps.tiles import RegisterTile


def product_in_tile(
    sch: Schedule, block: Block, at: Loop, tile: RegisterTile, steps: int, lanes: int
) -> Finish:
    """A product in registers under its reader's tile."""
    sch.compute_at(block, at, preserve_unit_loops=True)
    return sums_of_tile(sch, block, tile, steps, lanes)


def sums_of_tile(sch: Schedule, block: Block, tile: RegisterTile, steps: int, lanes: int) -> Finish:
    """A product of a tile's rows and lanes in registers. What there are more of, rows or vectors,
    is read in turn while the others are held.
    """
    sch.set_scope(block, 0, "local")
    *_, row, columns, k = sch.get_loops(block)
    vector, lane = sch.split(columns, [None, lanes])
    inside = (row, vector) if tile.rows >= tile.vectors else (vector, row)
    outer, step = sch.split(k, [None, steps])
    finish = sum_in_tile(sch, block, [outer, step], [*inside, lane], lanes)
    sch.unroll(step)
    return finish


def down_the_lanes(sch: Schedule, block: Block, at: Loop, keys: Loop, lanes: int) -> Finish:
    """Reduce over the loop of keys, each lane for itself, where `at` computes what is reduced."""
    sch.reverse_compute_at(block, at, preserve_unit_loops=True)
    sch.set_scope(block, 0, "local")
    *_, every, key = sch.get_loops(block)
    vector, lane = sch.split(every, [None, lanes])
    unroll_tile(sch, [], [vector, key, lane], lanes)

    return lambda: start_sums(sch, block, keys, 1)


def innermost_serial(sch: Schedule, block: Block) -> Loop:
    """The loop around all that is unrolled and vectorised."""
    return [loop for loop in sch.get_loops(block) if sch.get(loop).kind == tir.ForKind.SERIAL][-1]
