"""The schedule of a window over padded rows: the padded copy, and register tiles."""

from __future__ import annotations

from .....tvm.types import Block, Loop, Schedule
from ....steps.blocks import Facts
from ....steps.images import Work, image_of
from ....steps.loops import vectorize, vectorize_row
from ....steps.parallel import parallel_over
from ....steps.registers import out_of_registers, start_parts, unroll_tile
from ..padding import copy_rows, pad_rows
from ..widened import widen
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
    outer = tiles_of(work, block, plan, stages.parts, stages.floats)
    apart = len(block.spatial) == 5  # channels by themselves
    pad = None if stages.copy is None else Facts(sch, stages.copy)
    if apart and pad is not None and pad.shape[1] == block.shape[1]:
        # A channel's image is copied just before its windows: it stays in L1, or in L2. 96x112x112
        # of floats at stride 2, Zen 3, AVX2: all channels first 0.58 to 0.65 ms, so 0.49 to 0.55;
        # with two cores 0.58 and 0.41 (Nov 2026).
        sch.compute_at(pad.block, outer[1], preserve_unit_loops=True)
        copy_rows(sch, pad, p, plan.vector)
        work.done.add(pad.name)
        outer = outer[:2]
    elif pad is not None:
        pad_rows(work, pad, p, plan.vector)
    parallel_over(sch, outer, steps / plan.vector)


def tiles_of(
    work: Work, block: Facts, plan: PixelPlan, parts: Block = None, floats: Block = None
) -> list[Loop]:
    """The tiles of a task, and its pixels out of them; -> the loops over tasks."""
    sch, apart = work.sch, len(block.spatial) == 5
    image = _pixels(work, block, plan)
    if image is None:
        copy = _tile_in_registers(work, block, plan, parts, floats)
        return list(sch.get_loops(copy))[: 2 if apart else 3]
    outer = _tasks(sch, image, 1 if apart else block.shape[-3], plan)
    tile_under(work, block, plan, outer[-1], parts, floats)
    work.done.add(image.name)
    return outer


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
    vectorize_row(sch, x, plan.row, plan.vector)
    return [n, b, chunk] if rows == 1 else [n, chunk, b]


def tile_under(
    work: Work,
    block: Facts,
    plan: PixelPlan,
    loop: Loop,
    parts: Block = None,
    floats: Block = None,
) -> None:
    """The tiles that an iteration of a loop reads, computed at its beginning."""
    written, added = out_of_registers(work.sch, block.block, parts)
    work.sch.compute_at(written, loop, preserve_unit_loops=True)
    _sums_in_registers(work, added, written, plan, floats)


def _tile_in_registers(
    work: Work, block: Facts, plan: PixelPlan, parts: Block, floats: Block
) -> Block:
    """Tiles where they stand; -> what writes them."""
    written, added = out_of_registers(work.sch, block.block, parts)
    _sums_in_registers(work, added, written, plan, floats)
    return written


def _sums_in_registers(
    work: Work, sums: Block, copy: Block, plan: PixelPlan, floats: Block
) -> None:
    sch, block = work.sch, Facts(work.sch, sums)
    apart = len(block.spatial) == 5
    loops = list(sch.get_loops(copy))
    adds = len(Facts(sch, copy).reduction)
    shared = loops[-1] if adds else loops[-4]
    around = _register_tile(work, copy, plan, apart)
    sch.compute_at(block.block, around, preserve_unit_loops=True)
    if floats is not None:
        # Once for all tiles of a task, of the channels that these read together.
        widen(work, floats, shared, plan.vector)
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    rows = [] if apart else [loops[block.spatial[-3].position]]
    tile = [*rows, loops[block.spatial[-1].position]]
    work.finish.append(accumulate(sch, block, tile, plan.window, plan.vector))
    work.done |= {block.name, Facts(sch, copy).name}


def _register_tile(work: Work, copy: Block, plan: PixelPlan, apart: bool) -> Loop:
    """Split what leaves the registers into register tiles; -> the loop around one."""
    sch, adds = work.sch, len(Facts(work.sch, copy).reduction)
    r, t, lane, *part = list(sch.get_loops(copy))[-3 - adds :]
    lo, li = sch.split(lane, [None, plan.tile.vectors * plan.vector])
    if apart:
        vectorize(sch, li, plan.vector)
        return lo
    ro, ri = sch.split(r, [None, plan.tile.rows])
    unroll_tile(sch, [*part, t, lo, ro], [ri, li], plan.vector)
    work.finish += start_parts(sch, copy, part)
    return ro
