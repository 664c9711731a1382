"""The schedule of a window over padded rows: the padded copy, and register tiles."""

from __future__ import annotations

from .....language.types import Block, Loop, Schedule
from ....steps.blocks import Facts
from ....steps.elementwise import converts_bytes
from ....steps.images import Work, image_of
from ....steps.loops import PARTITION, start_sums, vectorize
from ....steps.parallel import parallel_over
from ....steps.tiles import BLOCK
from ..lanes import Lanes
from ..window import accumulate
from .compute import PixelStages
from .plan import PixelPlan


def schedule(work: Work, stages: PixelStages, plan: PixelPlan) -> None:
    """for task: for tile: acc = 0; for k: acc += ...; tiles = acc;  then the task's pixels out of
    its tiles.
    """
    sch, p, block = work.sch, plan.lanes, Facts(work.sch, stages.tiles)
    # Of tiles that add several parts, it is the parts that multiply.
    steps = (block if stages.parts is None else Facts(sch, stages.parts)).steps
    outer = tiles_of(work, block, plan, stages.parts)
    apart = len(block.spatial) == 5  # channels by themselves
    pad = None if stages.copy is None else Facts(sch, stages.copy)
    if apart and pad is not None and pad.shape[1:3] == (block.shape[1], 1):
        # A channel's image is copied just before its windows: it stays in L1.
        sch.compute_at(pad.block, outer[1], preserve_unit_loops=True)
        _copy_rows(sch, pad, p, plan.vector)
        work.done.add(pad.name)
        outer = outer[:2]
    elif pad is not None:
        pad_rows(work, pad, p, plan.vector)
    parallel_over(sch, outer, steps / plan.vector)


def tiles_of(work: Work, block: Facts, plan: PixelPlan, parts: Block = None) -> list[Loop]:
    """The tiles of a task, and its pixels out of them; -> the loops over tasks."""
    sch, apart = work.sch, len(block.spatial) == 5
    image = _pixels(work, block, plan)
    if image is None:
        copy = _tile_in_registers(work, block, plan, parts)
        return list(sch.get_loops(copy))[: 2 if apart else 3]
    outer = _tasks(sch, image, 1 if apart else block.shape[-3], plan)
    tile_under(work, block, plan, outer[-1], parts)
    work.done.add(image.name)
    return outer


def pad_rows(work: Work, pad: Facts, p: Lanes, vector: int, at: Loop | None = None) -> None:
    """A padded copy in parallel: each core takes, by and large, what its windows read; or under the
    task that reads it.
    """
    sch = work.sch
    work.done.add(pad.name)
    if at is not None:
        sch.compute_at(pad.block, at, preserve_unit_loops=True)
        _copy_rows(sch, pad, p, vector)
        return
    n, c = list(sch.get_loops(pad.block))[:2]
    phase, rows = _copy_rows(sch, pad, p, vector)
    outer = [n, c]
    if all(len(reader.spatial) == 6 for reader in pad.consumers):  # tasks are blocks of rows
        group, row = sch.split(rows, [None, p.rows])
        sch.reorder(n, group, c, phase, row)
        outer = [n, group, c]
    parallel_over(sch, outer, pad.size / 4)


def _copy_rows(sch: Schedule, pad: Facts, p: Lanes, vector: int) -> tuple[Loop, Loop]:
    """A copy row by row, horizontal phases innermost: contiguous reads; -> phase and row loops.

    64x56x56 at stride 2, one core, LLVM 10: 52 us; with the phases outermost 83. LLVM 22: 16 both.
    """
    *_, phase, lane = sch.get_loops(pad.block)
    row, column = sch.split(lane, [None, p.pitch])
    vertical, horizontal = sch.split(phase, [None, p.phases[1]])
    sch.reorder(vertical, row, column, horizontal)
    sch.unroll(vertical)
    sch.unroll(horizontal)
    if p.phases[1] > 1 or p.pitch > 4 * vector:
        if p.phases[1] == 1 and (vector < BLOCK or converts_bytes(pad)):
            # LLVM masks vectors of AVX-512 alone, and no bytes that it converts: the latter of
            # 32x112x112, 3x3, 193 us, so 119; with AVX2 96x92x92 401 and 209 (Zen 4, Nov 2026).
            sch.annotate(column, PARTITION, 1)
        return vertical, row
    sch.reorder(horizontal, column)
    if p.is_whole:
        sch.vectorize(column)  # no padding between rows: nothing to test for each element
    else:
        # The tests are constants then; LLVM 10 makes 6 us of 64x28x28, and 14 of a loop.
        sch.unroll(column)
    return vertical, row


def _pixels(work: Work, block: Facts, plan: PixelPlan) -> Facts | None:
    """The one reader of the tiles that runs over pixels.

    A single tile stays by itself: region inference would cut it to the lanes in use.
    """
    image, p = image_of(work, block), plan.lanes
    fits = image is not None and p.tiles > 1 and image.shape[2:] == (p.height, p.width)
    return image if fits else None


def _tasks(sch: Schedule, image: Facts, rows: int, plan: PixelPlan) -> list[Loop]:
    """The pixels and channels of one task inside, in vectors; -> the loops over tasks."""
    n, o, y, x = sch.get_loops(image.block)
    chunk, yi = sch.split(y, [None, plan.lanes.rows])
    b, oi = sch.split(o, [None, rows])
    sch.reorder(n, *((b, chunk) if rows == 1 else (chunk, b)), oi, yi, x)
    if plan.row:
        vectorize(sch, sch.split(x, [None, plan.row])[1], plan.vector)
    return [n, b, chunk] if rows == 1 else [n, chunk, b]


def tile_under(work: Work, block: Facts, plan: PixelPlan, loop: Loop, parts: Block = None) -> None:
    """The tiles that an iteration of a loop reads, computed at its beginning."""
    if parts is not None:
        work.sch.compute_at(block.block, loop, preserve_unit_loops=True)
        _tile_in_registers(work, block, plan, parts)
        return
    copy = work.sch.cache_write(block.block, 0, "local")
    work.sch.compute_at(copy, loop, preserve_unit_loops=True)
    _sums_in_registers(work, block, copy, plan)


def _tile_in_registers(work: Work, block: Facts, plan: PixelPlan, parts: Block) -> Block:
    """Tiles where they stand; -> what writes them."""
    sch = work.sch
    if parts is None:
        copy = sch.cache_write(block.block, 0, "local")
        _sums_in_registers(work, block, copy, plan)
        return copy
    sch.set_scope(parts, 0, "local")
    _sums_in_registers(work, Facts(sch, parts), block.block, plan)
    return block.block


def _sums_in_registers(work: Work, block: Facts, copy: Block, plan: PixelPlan) -> None:
    sch, apart = work.sch, len(block.spatial) == 5
    around = _register_tile(work, copy, plan, apart)
    sch.compute_at(block.block, around, preserve_unit_loops=True)
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    rows = [] if apart else [loops[block.spatial[-3].position]]
    tile = [*rows, loops[block.spatial[-1].position]]
    work.finish.append(accumulate(sch, block, tile, plan.window, plan.vector))
    work.done |= {block.name, Facts(sch, copy).name}


def _register_tile(work: Work, copy: Block, plan: PixelPlan, apart: bool) -> Loop:
    """Split what leaves the registers into register tiles; -> the loop around one."""
    sch, adds = work.sch, Facts(work.sch, copy).reduction
    *_, r, t, lane = list(sch.get_loops(copy))[: -1 if adds else None]
    part = list(sch.get_loops(copy))[-1]
    lo, li = sch.split(lane, [None, plan.tile.vectors * plan.vector])
    if apart:
        vectorize(sch, li, plan.vector)
        return lo
    ro, ri = sch.split(r, [None, plan.tile.rows])
    sch.reorder(*([part] if adds else []), t, lo, ro, ri, li)
    sch.unroll(ri)
    vectorize(sch, li, plan.vector)
    if adds:
        work.finish.append(lambda: start_sums(sch, copy, part, 1))
    return ro
