"""The schedule of a convolution whose lanes are channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....tvm.types import Loop, Schedule
from ....steps.blocks import Facts, divisor, stored_at_once
from ....steps.images import Work, image_of
from ....steps.loops import prefetch_next, prefetch_residual, transpose, vectorize_row
from ....steps.parallel import parallel_over
from ....steps.registers import out_of_registers, start_parts, unroll_tile, weight_of
from ....steps.tiles import BLOCK
from ..padding import pad_rows
from ..window import accumulate
from .compute import ChannelStages
from .plan import ON_STACK, ChannelPlan

ROW_AXIS = 2  # of the sums: image, block, row, pixel, channel
OUT_OF_STACK = ON_STACK // 4 + BLOCK  # floats between two rows, so that one is not on the stack

TURNED = 256  # pixels that are transposed at a time, of 16 channels: half of L1


def stays(work: Work, stages: ChannelStages, plan: ChannelPlan) -> set[str]:
    """The result, where it is transposed in registers."""
    return {Facts(work.sch, stages.result).name} if plan.is_turned else set()


def schedule(work: Work, stages: ChannelStages, plan: ChannelPlan) -> None:
    """for one or two blocks of channels: for row of pixels: acc[pixels][channels] = 0; for k: acc
    += ...; store.

    Blocks alone are the tasks where these are even, and each prefetches the weight of the next.
    """
    sch, sums, alone = work.sch, Facts(work.sch, stages.sums), plan.blocks_alone
    turned = Facts(sch, stages.result) if plan.is_turned else None
    # No inference finds the blocks of some channels where zeros stand between groups.
    image = None if plan.is_apart else image_of(work, turned or sums)
    registers = out_of_registers(sch, sums.block, stages.parts)
    written, added = (Facts(sch, block) for block in registers)
    if plan.in_memory:
        sch.storage_align(written.block, 0, ROW_AXIS, OUT_OF_STACK, 0)
    n, b, y, tile_loops = _tasks(work, image, turned, written, plan)
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
    work: Work, image: Facts | None, turned: Facts | None, written: Facts, plan: ChannelPlan
) -> tuple[Loop, Loop, Loop, tuple[Loop, Loop, Loop]]:
    """Loops over images, blocks and rows, and those that register tiles are cut from."""
    sch, last = work.sch, image or turned
    if last is None:
        n, b, y, x, lane, *part = sch.get_loops(written.block)
        b, bi = sch.split(b, [None, plan.pair])
        sch.reorder(n, b, *([*part, y] if plan.blocks_alone else [y, *part]), bi)
    else:
        together = plan.is_flat or (plan.blocks_alone and bool(written.reduction))
        n, b, y, at = _image(sch, last, turned, together, plan)
        sch.compute_at(written.block, at, preserve_unit_loops=True)
        _, bi, row, x, lane, *part = list(sch.get_loops(written.block))[-len(written.axes) :]
        sch.reorder(*part, row, bi)
        work.done |= {block.name for block in (image, turned) if block is not None}
    work.finish += start_parts(sch, written.block, part)
    return n, b, y, (x, lane, bi)


def _image(
    sch: Schedule, last: Facts, turned: Facts | None, together: bool, plan: ChannelPlan
) -> tuple[Loop, Loop, Loop, Loop]:
    """The pixels and channels of a task inside; -> the loops over images, blocks and rows, and
    where the sums are computed: of all rows `together`, or row by row.
    """
    n, o, y, x = sch.get_loops(last.block)
    b, oi = sch.split(o, [None, plan.pair * BLOCK])
    if turned is None:
        sch.reorder(n, b, *([oi, y] if plan.is_flat else [y, oi]), x)
        sch.vectorize(x)  # gathers: 9% less than scalars of 7x7 pixels
        return n, b, y, b if together else y
    oo, oi = sch.split(oi, [None, BLOCK])
    height, width = last.shape[2:]
    rows = divisor(height, max(1, TURNED // width)) if together else 1
    y, yi = sch.split(y, [None, rows])
    sch.reorder(n, b, *([oo, y] if together else [y, oo]), oi, yi, x)
    inner = [oi, yi, x]
    if last is not turned:
        sch.compute_at(turned.block, y if together else oo, preserve_unit_loops=True)
        row = sch.fuse(yi, x)
        vectorize_row(sch, row, stored_at_once(rows * width, plan.vector), plan.vector)
        inner = list(sch.get_loops(turned.block))[-3:]
    o, yi, x = inner
    o, lane = sch.split(o, [None, plan.vector])
    transpose(sch, lane, sch.fuse(yi, x), plan.vector)
    return n, b, y, b if together else y


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
