"""The schedule of a convolution whose lanes are channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....language.types import Loop, Schedule
from ....steps.blocks import Facts
from ....steps.images import Work, image_of
from ....steps.loops import prefetch_next, prefetch_residual, vectorize
from ....steps.parallel import parallel_over
from ..window import accumulate
from .compute import ChannelStages
from .plan import ChannelPlan


def schedule(work: Work, stages: ChannelStages, plan: ChannelPlan) -> None:
    """for one or two blocks of channels: for row of pixels: acc[pixels][channels] = 0; for k: acc
    += ...; store.

    Blocks alone are the tasks where these are even, and each prefetches the weight of the next.
    """
    sch, sums = work.sch, Facts(work.sch, stages.sums)
    image = image_of(work, sums)
    copy = sch.cache_write(sums.block, 0, "local")
    if image is None:
        n, b, y, x, lane = sch.get_loops(copy)
        b, bi = sch.split(b, [None, plan.pair])
        sch.reorder(n, b, y, bi)
    else:
        n, b, y = _image(sch, image, sums.shape[-1], plan)
        sch.compute_at(copy, b if plan.is_flat else y, preserve_unit_loops=True)
        _, bi, _, x, lane = list(sch.get_loops(copy))[-5:]
        work.done.add(image.name)
    sch.compute_at(sums.block, _register_tile(sch, (x, lane, bi), plan), preserve_unit_loops=True)
    loops = list(sch.get_loops(sums.block))[-len(sums.axes) :]
    tile = [loops[sums.spatial[i].position] for i in (1, 3, 4)]
    alone = plan.blocks_alone
    task = parallel_over(sch, [n, b] if alone else [n, b, y], sums.steps / plan.vector)
    if image is not None:
        prefetch_residual(sch, y if alone and not plan.is_flat else task, image)
    split = _prefetching(sch, sums, task, plan) if plan.prefetch else None
    work.finish.append(accumulate(sch, sums, tile, plan.window, plan.vector, split))
    work.done |= {sums.name, Facts(sch, copy).name}


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
    """Splits a loop over k into runs that prefetch a line each of the next task's weight."""
    (weight,) = sums.buffers_along(sums.spatial[-1])

    def split(k: Loop) -> Loop:
        outer, inner = sch.split(k, [None, plan.prefetch])
        sch.unroll(inner)
        prefetch_next(sch, task, outer, weight)
        return outer

    return split
