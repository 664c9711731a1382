"""The schedule of a convolution whose lanes are channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .....language.types import Loop, Schedule
from ....steps.blocks import Facts
from ....steps.images import Work, image_of
from ....steps.loops import prefetch_next, prefetch_residual, start_sums, vectorize
from ....steps.parallel import parallel_over
from ..pixels.schedule import pad_rows
from ..window import accumulate
from .compute import ChannelStages
from .plan import ChannelPlan


def schedule(work: Work, stages: ChannelStages, plan: ChannelPlan) -> None:
    """for one or two blocks of channels: for row of pixels: acc[pixels][channels] = 0; for k: acc
    += ...; store.

    Blocks alone are the tasks where these are even, and each prefetches the weight of the next.
    """
    sch, sums, alone = work.sch, Facts(work.sch, stages.sums), plan.blocks_alone
    # No inference finds the blocks of some channels where zeros stand between groups.
    image = None if plan.is_apart else image_of(work, sums)
    written, added = _in_registers(sch, stages, sums)
    n, b, y, tile_loops = _tasks(work, image, written, plan)
    sch.compute_at(added.block, _register_tile(sch, tile_loops, plan), preserve_unit_loops=True)
    loops = list(sch.get_loops(added.block))[-len(added.axes) :]
    tile = [loops[added.spatial[i].position] for i in (-4, -2, -1)]
    outer = [n] if plan.by_images else [n, b] if alone else [n, b, y]
    task = parallel_over(sch, outer, added.steps / plan.vector)
    of_blocks = b if plan.by_images else task
    if image is not None:
        prefetch_residual(sch, y if alone and not plan.is_flat else of_blocks, image)
    split = _prefetching(sch, added, of_blocks, plan) if plan.prefetch else None
    if stages.copy is not None:
        at = task if plan.by_images else None
        pad_rows(work, Facts(sch, stages.copy), plan.lanes, plan.vector, at)
    work.finish.append(accumulate(sch, added, tile, plan.window, plan.vector, split))
    work.done |= {sums.name, added.name, written.name}


def _in_registers(sch: Schedule, stages: ChannelStages, sums: Facts) -> tuple[Facts, Facts]:
    """The block that writes the sums to memory, and that which adds in registers: of all input
    channels, or of some, to which memory has the sums of the others.
    """
    if stages.parts is None:
        return Facts(sch, sch.cache_write(sums.block, 0, "local")), sums
    sch.set_scope(stages.parts, 0, "local")
    return sums, Facts(sch, stages.parts)


def _tasks(
    work: Work, image: Facts | None, written: Facts, plan: ChannelPlan
) -> tuple[Loop, Loop, Loop, tuple[Loop, Loop, Loop]]:
    """Loops over images, blocks and rows, and those that register tiles are cut from."""
    sch, parted = work.sch, bool(written.reduction)
    if image is None:
        n, b, y, x, lane, *part = sch.get_loops(written.block)
        b, bi = sch.split(b, [None, plan.pair])
        sch.reorder(n, b, *([*part, y] if plan.blocks_alone else [y, *part]), bi)
    else:
        n, b, y = _image(sch, image, written.shape[-1], plan)
        together = plan.is_flat or (plan.blocks_alone and parted)
        sch.compute_at(written.block, b if together else y, preserve_unit_loops=True)
        _, bi, row, x, lane, *part = list(sch.get_loops(written.block))[-len(written.axes) :]
        sch.reorder(*part, row, bi)
        work.done.add(image.name)
    work.finish.extend(partial(start_sums, sch, written.block, p, 1) for p in part)
    return n, b, y, (x, lane, bi)


def _image(sch: Schedule, image: Facts, channels: int, plan: ChannelPlan) -> tuple[Loop, ...]:
    """The pixels and channels of a task inside, transposed when they are read; -> the loops over
    images, blocks and rows.
    """
    n, o, y, x = sch.get_loops(image.block)
    b, oi = sch.split(o, [None, plan.pair * channels])
    sch.reorder(n, b, *([oi, y] if plan.is_flat else [y, oi]), x)
    sch.vectorize(x)  # gathers: 9% less than scalars of 7x7 pixels
    return n, b, y


def _register_tile(sch: Schedule, loops: Sequence[Loop], plan: ChannelPlan) -> Loop:
    """Split the copy out of registers into register tiles; -> the loop around one."""
    x, lane, bi = loops
    xo, xi = sch.split(x, [None, plan.pixels])
    lo, li = sch.split(lane, [None, plan.wide])
    sch.reorder(xo, lo, bi, xi, li)
    # Of a row in uneven tiles, which pixels there are is known when it is unrolled.
    for loop in (bi, xi) if plan.is_even else (xo, bi, xi):
        sch.unroll(loop)
    vectorize(sch, li, plan.vector)
    return lo


def _prefetching(
    sch: Schedule, sums: Facts, task: Loop, plan: ChannelPlan
) -> Callable[[Loop], Loop]:
    """Splits a loop over k into runs that prefetch some lines each of the next piece of weight."""
    (weight,) = sums.buffers_along(sums.spatial[-1])

    def split(k: Loop) -> Loop:
        outer, inner = sch.split(k, [None, plan.prefetch])
        sch.unroll(inner)
        if not plan.piece:
            prefetch_next(sch, task, outer, weight)
            return outer
        # For the first piece of a kernel it waits: the smaller, the better.
        piece, outer = sch.split(outer, [None, plan.piece])
        prefetch_next(sch, piece, outer, weight)
        return piece

    return split
