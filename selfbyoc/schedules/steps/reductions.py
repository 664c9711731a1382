"""Steps for reductions: register tiles, rows along contiguous memory, and each block by itself."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from ...language.decisions import is_symbolic
from ...machine import Machine
from ...tvm import dtype_of
from ...tvm.types import Loop, Schedule
from .blocks import Facts, divisor, facts, same_elements
from .indices import Axis
from .loops import PARTITION, Finish, start_sums, vectorize
from .parallel import parallel_over
from .registers import unroll_tile
from .tiles import most_sums


@dataclass(frozen=True)
class Tile:
    """How the result of a reduction is held in registers: `rows` of axis `row_axis`, `width` of the
    last axis.
    """

    row_axis: int | None
    rows: int
    width: int


def register_tile(block: Facts, machine: Machine) -> Tile | None:
    """The tile of a reduction whose last spatial axis is contiguous in what it reads; else None.

    Twice the sums that hide the latency of the multiply-adds, as far as there are registers (16 x
    14 floats: 360 GFLOP/s, 8 x 14: 307, 8 x 28: 45 for spills; 2 x Zen 5, conv2d 64x56x56, Nov
    2026).
    """
    if not block.spatial:
        return None
    last = block.spatial[-1]
    reads = block.reads_of(last)
    if "strided" in reads or "last" not in reads or last.extent == 1:
        return None
    lanes = machine.lanes(block.dtype)
    sums = min(most_sums(machine), 2 * machine.in_flight)
    if last.extent % (2 * lanes) == 0 and not is_symbolic(last.extent):
        width, rows = 2 * lanes, sums // 2
    else:
        width, rows = _width(last.extent, lanes), sums
    axis, together = _row_axis(block, last)
    if axis is None:
        return Tile(None, 1, width)
    return Tile(axis.position, 1 if is_symbolic(together) else divisor(together, rows), width)


def _width(extent: int, lanes: int) -> int:
    """A divisor that fills at least half a vector, or the whole axis where it is short; else one
    vector, with a tail.
    """
    if is_symbolic(extent):
        return lanes
    best = divisor(extent, lanes)
    if best * 2 >= lanes or best == extent:
        return best
    return extent if extent <= 2 * lanes else lanes


def _row_axis(block: Facts, last: Axis) -> tuple[Axis | None, int]:
    """The axis whose operand is broadcast over the vector: with it, one loaded vector serves many
    rows. And how many rows of it do: those of one group, in a grouped convolution.
    """
    for axis in reversed(block.spatial[:-1]):
        if axis.extent == 1 or not any(u != "absent" for u in block.reads_of(axis)):
            continue
        for together in (axis.extent, *block.groups_of(axis)):
            if _is_vector_free(block, last, axis, together):
                return axis, together
    inner = [a for a in block.spatial[:-1] if a.extent > 1]
    return (inner[-1], inner[-1].extent) if inner else (None, 1)


def _is_vector_free(block: Facts, last: Axis, axis: Axis, together: int) -> bool:
    """Whether so many neighbours along an axis read the same vectors."""
    used = block.reads_of(axis, apart=together)
    return all(
        u == "absent" for u, o in zip(used, block.reads_of(last), strict=True) if o == "last"
    )


def epilogue_of(sch: Schedule, block: Facts, among: Collection[str] | None = None) -> Facts:
    """The elementwise block after a reduction, `among` those of these names; a copy out of
    registers where there is none.
    """
    consumers = [] if block.is_output else block.consumers
    free = all(among is None or c.name in among for c in consumers)
    one = free and len(consumers) == 1
    if one and not consumers[0].reduction and same_elements(block, consumers[0]):
        return consumers[0]
    return Facts(sch, sch.cache_write(block.block, 0, "local"))


def split_tile(sch: Schedule, epilogue: Facts, tile: Tile) -> tuple[list[Loop], Loop]:
    """Split an epilogue's loops into outer ones and the tile (rows unrolled, vectors); -> outer
    loops, innermost outer.
    """
    loops = list(sch.get_loops(epilogue.block))
    *before, last = loops
    extent = int(sch.get(last).extent)
    wo, wi = sch.split(last, [None, tile.width])
    whole = int(sch.get(wo).extent) * tile.width == extent and not is_symbolic(extent)
    if not whole and has_short_indices(epilogue):
        sch.annotate(wo, PARTITION, 1)  # all tiles but the last without a test
    if tile.row_axis is None:
        outer, inner = [*before, wo], []
    else:
        ro, ri = sch.split(before[tile.row_axis], [None, tile.rows])
        before[tile.row_axis] = ro
        outer, inner = [*before, wo], [ri]
    sch.reorder(*outer, *inner, wi)
    for loop in inner:
        sch.unroll(loop)
    return outer, wi


def tile_reduction(
    sch: Schedule, block: Facts, machine: Machine, among: Collection[str] | None = None
) -> tuple[list[Loop], Finish] | None:
    """A reduction as register tiles under its epilogue; -> the loops around, or None if none fits.

    for outer:  acc[rows, width] = 0;  for k: acc += ...;  out[rows, width] = epilogue(acc)
    """
    tile = register_tile(block, machine)
    if tile is None:
        return None
    lanes = machine.lanes(block.dtype)
    epilogue = epilogue_of(sch, block, among)
    outer, wi = split_tile(sch, epilogue, tile)
    vectorize(sch, wi, lanes)
    sch.compute_at(block.block, outer[-1], preserve_unit_loops=True)
    if not block.in_scope("local"):
        sch.set_scope(block.block, 0, "local")
    return outer, accumulate(sch, block, tile, lanes)


def has_short_indices(block: Facts) -> bool:
    """Whether its indices have 32 bits: TVM 0.27 narrows others itself, and loses the hint."""
    return all(dtype_of(axis.var) == "int32" for axis in block.axes)


def has_tail(sch: Schedule, loop: Loop) -> bool:
    """Whether the last run of a loop over tiles is another one: it must stay a loop of its own."""
    return PARTITION in dict(sch.get(loop).annotations)


def accumulate(sch: Schedule, block: Facts, tile: Tile, lanes: int) -> Finish:
    """The loops of a reduction inside its tile: reduction outermost, rows unrolled, lanes
    vectorised.
    """
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    spatial = [loops[a.position] for a in block.spatial]
    reduction = [loops[a.position] for a in block.reduction]
    rows = [] if tile.row_axis is None else [spatial[tile.row_axis]]
    unroll_tile(sch, reduction, [*rows, spatial[-1]], lanes)
    if int(sch.get(reduction[-1]).extent) <= 7 and not is_symbolic(block.reduction[-1].extent):
        sch.unroll(reduction[-1])  # a window's columns; a long k stays a loop
    return lambda: start_sums(sch, block.block, reduction[0], len(rows))


def reduce_rows(
    sch: Schedule, block: Facts, machine: Machine, tails: bool = False
) -> Finish | None:
    """A reduction along contiguous memory: partial results in one vector, then one horizontal sum.

    The vector is as long as the row divides; with `tails`, a row that does not divide ends in a
    tail, element by element. Only one reduction of a function may: after its sums are set apart
    TensorIR takes the test of another's tail for no affine binding.
    """
    whole = machine.lanes(block.dtype)
    along = _along(block)
    length = math.prod(axis.extent for axis in along)
    is_open = any(is_symbolic(axis.extent) for axis in along)
    lanes = whole if is_open or (tails and length >= 2 * whole) else divisor(length, whole)
    fills = tails if is_open else 2 * lanes >= whole and length >= 2 * lanes  # half a vector
    if not block.spatial and len(along) < len(block.reduction):
        fills = False  # TVM 0.27's rfactor takes no other loops around one without results
    if not (block.reduces_rows() and fills):
        return interleave_rows(sch, block, machine)
    loops = list(sch.get_loops(block.block))
    reduction = [loops[axis.position] for axis in along]
    row = sch.fuse(*reduction) if len(reduction) > 1 else reduction[0]
    _, inner = sch.split(row, [None, lanes])
    for other in (o.block for o in facts(sch) if not sch.get_loops(o.block)):
        sch.add_unit_loop(other)  # beside a block without loops TVM's rfactor fails (0.27)
    partial = sch.rfactor(inner, len(block.spatial))
    # The sum moves, not the partial ones: compute_at loses the test of a tail.
    outer = list(sch.get_loops(partial))[: len(block.spatial)]
    if outer:
        fused = parallel_over(sch, outer, block.steps / lanes)
        sch.reverse_compute_at(block.block, fused)
    *_, k, lane = sch.get_loops(partial)
    first = list(sch.get_loops(partial))[1 if outer else 0]
    for number in range(len(sch.get(partial).writes)):
        sch.set_scope(partial, number, "local")
    sch.vectorize(lane)
    if length % lanes or is_open:
        sch.annotate(k, PARTITION, 1)
    sch.unroll(sch.get_loops(block.block)[-1])
    return lambda: start_sums(sch, partial, first, 0)


def _along(block: Facts) -> list[Axis]:
    """The axes that are reduced in vectors, as one: all, or the last where its length is symbolic.
    Nobody can prove of other ones that they are contiguous.
    """
    is_open = any(is_symbolic(axis.extent) for axis in block.reduction)
    return block.reduction[-1:] if is_open else block.reduction


def interleave_rows(sch: Schedule, block: Facts, machine: Machine) -> Finish | None:
    """A reduction without vectors: rows in parallel, several of them a step, for each waits on its
    own last sum.
    """
    axes = [a for a in block.spatial if a.extent > 1]
    steps = bool(axes) and not is_symbolic(axes[-1].extent)
    rows = divisor(axes[-1].extent, machine.in_flight) if steps and block.results_read < 2 else 1
    loops = list(sch.get_loops(block.block))
    if rows == 1:
        if axes:
            parallel_over(sch, [loops[a.position] for a in block.spatial], block.steps)
        return None
    copy = sch.cache_write(block.block, 0, "local")
    loops = list(sch.get_loops(copy))
    position = block.spatial.index(axes[-1])
    outer, inner = sch.split(loops[position], [None, rows])
    sch.unroll(inner)
    sch.compute_at(block.block, outer, preserve_unit_loops=True)
    own = list(sch.get_loops(block.block))[-len(block.axes) :]
    sch.reorder(*(own[a.position] for a in block.reduction), own[axes[-1].position])
    sch.unroll(own[axes[-1].position])
    parallel_over(sch, [*loops[:position], outer], block.steps)
    return lambda: start_sums(sch, block.block, own[block.reduction[0].position], 0)
