"""The schedule of a convolution whose lanes are groups."""

from __future__ import annotations

from .....tvm.types import Block, Loop, Schedule
from ....steps.blocks import Facts
from ....steps.elementwise import converts_bytes
from ....steps.images import Work, image_of
from ....steps.loops import transpose, vectorize, vectorize_row
from ....steps.parallel import parallel_over
from ....steps.registers import unroll_tile
from ....steps.tiles import BLOCK
from ..window import accumulate
from .compute import GroupStages
from .cost import turn_cycles
from .plan import GroupPlan


def stays(work: Work, stages: GroupStages, plan: GroupPlan) -> set[str]:
    """The stages that copy, which would be inlined elsewhere."""
    blocks = [b for b in (stages.copy, stages.frame, stages.rows) if b is not None]
    return {Facts(work.sch, block).name for block in blocks}


def schedule(work: Work, stages: GroupStages, plan: GroupPlan) -> None:
    """for 16 groups: the image turned, then framed; for tile: acc = 0; for k: acc += ...; turned
    back, and what is elementwise.
    """
    sch, rows, sums = work.sch, Facts(work.sch, stages.rows), Facts(work.sch, stages.sums)
    turned = [Facts(sch, b) for b in (stages.frame, stages.copy) if b is not None]
    steps = sums.steps + turn_cycles(plan) * (rows.size + turned[-1].size)
    image = image_of(work, rows)
    n, b = _tasks(sch, rows if image is None else image, plan, rows.shape[2])
    if image is not None:
        sch.compute_at(rows.block, b, preserve_unit_loops=True)
        work.done.add(image.name)
    _turn(sch, rows.block, (-2, -1), plan)
    _sums(work, sums, b, plan)
    for block in turned:
        sch.compute_at(block.block, b, preserve_unit_loops=True)
    if stages.frame is not None:
        *_, x, lane = sch.get_loops(stages.frame)
        sch.unroll(x)  # which columns are inside is known then
        vectorize(sch, lane, plan.vector)
    _turn(sch, stages.copy, (-1, -2), plan)
    parallel_over(sch, [n, b], steps / plan.vector)
    work.done |= {sums.name, rows.name, *(block.name for block in turned)}


def _tasks(sch: Schedule, image: Facts, plan: GroupPlan, each: int) -> tuple[Loop, Loop]:
    """What is written last, its pixels in vectors -> the loops over images and 16 groups."""
    if len(image.spatial) == 5:  # the rows themselves
        n, b = list(sch.get_loops(image.block))[:2]
        return n, b
    n, o, y, x = sch.get_loops(image.block)
    b, _ = sch.split(o, [None, BLOCK * each])
    pixel = sch.fuse(y, x)
    # Of bytes a row that is no whole number of vectors would be converted element by element.
    is_cut = converts_bytes(image) and int(sch.get(pixel).extent) > plan.vector
    vectorize_row(sch, pixel, plan.vector if is_cut else plan.row, plan.vector)
    return n, b


def _turn(sch: Schedule, block: Block, at: tuple[int, int], plan: GroupPlan) -> None:
    """A copy transposed in registers; `at` are its loops over lanes and pixels, from the end."""
    loops = list(sch.get_loops(block))
    lane, pixel = (loops[i] for i in at)
    outer, inner = sch.split(lane, [None, plan.vector])
    sch.reorder(outer, inner, pixel)
    transpose(sch, inner, pixel, plan.vector)


def _sums(work: Work, sums: Facts, at: Loop, plan: GroupPlan) -> None:
    """The sums of 16 groups, a register tile at a time."""
    sch = work.sch
    written = sch.cache_write(sums.block, 0, "local")
    sch.compute_at(written, at, preserve_unit_loops=True)
    sizes = zip(list(sch.get_loops(written))[-4:], (*plan.tile, plan.vector), strict=True)
    outer, inner = zip(*(sch.split(loop, [None, size]) for loop, size in sizes), strict=True)
    unroll_tile(sch, outer, inner, plan.vector)
    sch.compute_at(sums.block, outer[-1], preserve_unit_loops=True)
    loops = list(sch.get_loops(sums.block))[-len(sums.axes) :]
    tile = [loops[axis.position] for axis in sums.spatial[-4:]]
    work.finish.append(accumulate(sch, sums, tile, plan.window, plan.vector))
    work.done.add(Facts(sch, written).name)
