"""The schedule of a convolution whose lanes are channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....tvm.types import Loop, Schedule
from ....steps.blocks import Facts
from ....steps.images import Work, image_of
from ....steps.loops import prefetch_next, prefetch_residual
from ....steps.parallel import parallel_over
from ....steps.registers import out_of_registers, start_parts, unroll_tile, weight_of
from ....steps.tiles import BLOCK
from ..padding import pad_rows
from ..window import accumulate
from .compute import ChannelStages
from .plan import ON_STACK, ChannelPlan

ROW_AXIS = 2  # of the sums: image, block, row, pixel, channel
OUT_OF_STACK = ON_STACK // 4 + BLOCK  # floats between two rows, so that one is not on the stack


def schedule(work: Work, stages: ChannelStages, plan: ChannelPlan) -> None:
    """for one or two blocks of channels: for row of pixels: acc[pixels][channels] = 0; for k: acc
    += ...; store.

    Blocks alone are the tasks where these are even, and each prefetches the weight of the next.
    """
    sch, sums, alone = work.sch, Facts(work.sch, stages.sums), plan.blocks_alone
    # No inference finds the blocks of some channels where zeros stand between groups.
    image = None if plan.is_apart else image_of(work, sums)
    registers = out_of_registers(sch, sums.block, stages.parts)
    written, added = (Facts(sch, block) for block in registers)
    if plan.in_memory:
        sch.storage_align(written.block, 0, ROW_AXIS, OUT_OF_STACK, 0)
    n, b, y, tile_loops = _tasks(work, image, written, plan)
    sch.compute_at(added.block, _register_tile(sch, tile_loops, plan), preserve_unit_loops=True)
    loops = list(sch.get_loops(added.block))[-len(added.axes) :]
    tile = [loops[added.spatial[i].position] for i in (-4, -2, -1)]
    outer = [n] if plan.by_images else [n, b] if alone else [n, b, y]
    task = parallel_over(sch, outer, added.steps / plan.vector)
    of_blocks = b if plan.by_images else task
    if image is not None:
        prefetch_residual(sch, y if alone and not plan.is_flat else of_blocks, image)
    split = _prefetching(sch, added, of_blocks, plan) if plan.prefetch else _stepping(sch, plan)
    if stages.copy is not None:
        at = task if plan.by_images else None
        pad_rows(work, Facts(sch, stages.copy), plan.lanes, plan.vector, at)
    work.finish.append(accumulate(sch, added, tile, plan.window, plan.vector, split))
    work.done |= {sums.name, added.name, written.name}


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
    work.finish += start_parts(sch, written.block, part)
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
    unroll_tile(sch, [xo, lo], [bi, xi, li], plan.vector)
    if not plan.is_even:  # which pixels there are is known when it is unrolled
        sch.unroll(xo)
    return lo


def _stepping(sch: Schedule, plan: ChannelPlan) -> Callable[[Loop], Loop]:
    """Splits a loop over k into runs of some steps."""

    def split(k: Loop) -> Loop:
        if plan.steps == 1:
            return k
        outer, inner = sch.split(k, [None, plan.steps])
        sch.unroll(inner)
        return outer

    return split


def _prefetching(
    sch: Schedule, sums: Facts, task: Loop, plan: ChannelPlan
) -> Callable[[Loop], Loop]:
    """Splits a loop over k into runs that prefetch some lines each of the next piece of weight."""
    weight = weight_of(sums)

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
