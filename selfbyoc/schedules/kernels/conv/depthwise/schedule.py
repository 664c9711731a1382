"""The schedule of a window over each channel: padded rows of a chunk, and register tiles."""

from __future__ import annotations

from .....tvm.types import Loop, Schedule
from ....steps.blocks import Facts, stored_at_once
from ....steps.images import Work, image_of
from ....steps.loops import PARTITION, vectorize_row
from ....steps.parallel import parallel_over
from ....steps.registers import unroll_tile
from ..window import accumulate
from .compute import DepthwiseStages
from .plan import DepthwisePlan


def schedule(work: Work, stages: DepthwiseStages, plan: DepthwisePlan) -> None:
    """for channel: for chunk: its rows, padded; for row, for tile: acc = 0; for tap: acc += ...;
    what is elementwise, out of registers, or where it is costly for the chunk.
    """
    sch, block = work.sch, Facts(work.sch, stages.sums)
    image = image_of(work, block)
    if image is None or image.shape[2:] != plan.out:
        n, o, chunk = _tiles_in_memory(work, block, plan)
    elif image.is_costly:
        n, o, chunk, _, x = _pixels(sch, image, plan)
        vectorize_row(sch, x, stored_at_once(plan.out[1], plan.vector), plan.vector)
        _tiles_in_memory(work, block, plan, chunk)
        work.done.add(image.name)
    else:
        n, o, chunk = _tiles_out_of_registers(work, block, image, plan)
    if stages.copy is not None:
        _copy_rows(work, Facts(sch, stages.copy), chunk, plan)
    tasks = [n, o, chunk] if plan.by_rows else [n, o]
    parallel_over(sch, tasks, block.steps / plan.vector)
    work.done.add(block.name)


def _pixels(sch: Schedule, image: Facts, plan: DepthwisePlan) -> tuple[Loop, ...]:
    """The loops over images, channels, chunks, rows and columns of what reads the sums."""
    n, o, y, x = sch.get_loops(image.block)
    return n, o, *sch.split(y, [None, plan.rows]), x


def _tiles_out_of_registers(
    work: Work, block: Facts, image: Facts, plan: DepthwisePlan
) -> tuple[Loop, ...]:
    """The image a tile at a time, whose sums are never in memory; -> the loops over chunks."""
    sch = work.sch
    sch.set_scope(block.block, 0, "local")
    n, o, chunk, y, x = _pixels(sch, image, plan)
    tile, lane = sch.split(x, [None, plan.tile[1]])
    _register_tile(work, block, (y, tile, lane), plan)
    work.done.add(image.name)
    return n, o, chunk


def _tiles_in_memory(
    work: Work, block: Facts, plan: DepthwisePlan, at: Loop | None = None
) -> tuple[Loop, ...]:
    """The sums, a tile at a time, of all or of what a loop reads; -> the loops over chunks."""
    written = Facts(work.sch, work.sch.cache_write(block.block, 0, "local"))
    if at is not None:
        work.sch.compute_at(written.block, at, preserve_unit_loops=True)
    *outer, y, tile, lane = work.sch.get_loops(written.block)
    _register_tile(work, block, (y, tile, lane), plan)
    work.done.add(written.name)
    return tuple(outer[:3])


def _register_tile(
    work: Work, block: Facts, loops: tuple[Loop, Loop, Loop], plan: DepthwisePlan
) -> None:
    """The sums of one, under the loops over rows, tiles and lanes of what reads them."""
    sch, (y, tile, lane) = work.sch, loops
    y, row = sch.split(y, [None, plan.tile[0]])
    unroll_tile(sch, [y, tile], [row, lane], plan.vector)
    sch.compute_at(block.block, tile, preserve_unit_loops=True)
    own = list(sch.get_loops(block.block))[-len(block.axes) :]
    inner = [own[block.spatial[i].position] for i in (-3, -1)]
    work.finish.append(accumulate(sch, block, inner, plan.unrolled, plan.vector))


def _copy_rows(work: Work, pad: Facts, at: Loop, plan: DepthwisePlan) -> None:
    """The rows under a chunk, their phases innermost: contiguous reads."""
    sch = work.sch
    sch.compute_at(pad.block, at, preserve_unit_loops=True)
    *_, phase, column = sch.get_loops(pad.block)
    sch.reorder(column, phase)
    sch.unroll(phase)
    sch.annotate(column, PARTITION, 1)
    work.done.add(pad.name)
