"""The schedule of Winograd convolutions: a parallel region for the image, and one or two more."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ....tvm.types import Block, Loop, Schedule
from ...steps.blocks import Facts
from ...steps.images import Work, image_of
from ...steps.loops import prefetch_while_summing, start_sums, vectorize
from ...steps.parallel import parallel_over
from ...steps.registers import weight_of
from ...steps.tiles import BLOCK
from .compute import WinogradStages
from .plan import WinogradPlan


def blocks(stages: WinogradStages) -> list[Block]:
    """Its blocks but for the result, which may be inlined."""
    return [getattr(stages, f.name) for f in dataclasses.fields(stages) if f.name != "result"]


def stays(work: Work, stages: WinogradStages, plan: WinogradPlan) -> set[str]:
    """All but the result: each is a copy, or sums."""
    return {Facts(work.sch, block).name for block in blocks(stages)}


def join(sch: Schedule, found: Sequence[WinogradStages]) -> None:
    """Inline what lies between the pixels of one convolution and the image of the next: both have
    their channels last.
    """
    ends = {Facts(sch, stages.pixels).name for stages in found}
    for stages in found:
        for block in _between(Facts(sch, stages.image), ends):
            sch.compute_inline(block.block)


def _between(image: Facts, ends: set[str]) -> list[Facts]:
    """The elementwise blocks, first to last, on the only way from another convolution's pixels."""
    found: list[Facts] = []
    block = image
    while len(block.producers) == 1:
        (block,) = block.producers
        if block.name in ends:
            return found[::-1]
        if block.reduction or len(block.consumers) > 1:
            return []
        found.append(block)
    return []


def schedule(work: Work, stages: WinogradStages, plan: WinogradPlan) -> None:
    """for block of tiles: transform its inputs; for channels: products, and their transforms.

    The only block that reads the pixels, elementwise, where there is one, is computed from those of
    a step.
    """
    sch, reader = work.sch, image_of(work, Facts(work.sch, stages.pixels))
    # 1. The image once with its channels last: rows in parallel.
    _image(sch, Facts(sch, stages.image), plan)
    # 2. A task is a block of tiles; a step of it some vectors of output channels, whose pixels it
    # writes as they lie in the result.
    if reader is not None and reader.shape == plan.out and plan.apart == 1:
        outer, step = _result(sch, reader, stages.pixels, plan)
        work.done.add(reader.name)
    else:
        outer, step = _pixels(sch, stages.pixels, plan)
    # 3. Tile by tile out of the sums, row by row of a tile: what is between is in registers.
    _transforms(sch, stages, plan)
    # 4. Blocks in parallel, each with its inputs; or else channels, whose weights one core reads.
    if not plan.tasks_are_blocks:
        sch.reorder(step, *outer)
    _sums(work, stages.sums, step if plan.tasks_are_blocks else outer[-1], plan)
    _inputs(sch, stages, outer[-1] if plan.tasks_are_blocks else None, plan)
    sch.parallel(sch.fuse(*outer) if plan.tasks_are_blocks else sch.fuse(step, *outer))
    work.done |= stays(work, stages, plan)


def _image(sch: Schedule, image: Facts, plan: WinogradPlan) -> None:
    n, y, x, c = sch.get_loops(image.block)
    co, ci = sch.split(c, [None, BLOCK])
    sch.reorder(n, y, co, x, ci)
    vectorize(sch, ci, plan.lanes)
    parallel_over(sch, [n, y], image.size)


def _pixels(sch: Schedule, pixels: Block, plan: WinogradPlan) -> tuple[list[Loop], Loop]:
    """Pixels that another convolution reads, or several ops: as they are."""
    i, j, o, *_ = sch.get_loops(pixels)
    step, _ = sch.split(o, [None, plan.products.blocks])
    return [i, j], step


def _result(
    sch: Schedule, reader: Facts, pixels: Block, plan: WinogradPlan
) -> tuple[list[Loop], Loop]:
    """The one op that reads the pixels, and the pixels of a step under it."""
    t = plan.tiling
    n, o, y, x = sch.get_loops(reader.block)
    i, ni = sch.split(n, [None, t.images])
    j, yi = sch.split(y, [None, t.rows * t.m])
    step, oi = sch.split(o, [None, plan.products.blocks * BLOCK])
    # Channels lie together in the pixels: vectors of a row, one channel after the other, are
    # squares that are transposed in registers (tir/strided_vectors.py).
    sch.reorder(i, j, step, ni, yi, x, oi)
    if plan.row:
        x, lane = sch.split(x, [None, plan.row])
        sch.reorder(x, oi, lane)
        vectorize(sch, lane, plan.lanes)
    sch.compute_at(pixels, step, preserve_unit_loops=True)
    return [i, j], step


def _transforms(sch: Schedule, stages: WinogradStages, plan: WinogradPlan) -> None:
    """for channels: for tile: for row of it: A^T sums, times A."""
    o, y, x, lane = list(sch.get_loops(stages.pixels))[-4:]
    yo, yi = sch.split(y, [None, plan.m])
    xo, xi = sch.split(x, [None, plan.m])
    part, lane = sch.split(lane, [None, plan.lanes])
    sch.reorder(o, yo, xo, part, yi, xi, lane)
    sch.unroll(xi)
    sch.vectorize(lane)
    if plan.transform_columns:
        sch.compute_at(stages.rows, part, preserve_unit_loops=True)
        *_, row, f, lane = sch.get_loops(stages.rows)
        sch.reorder(f, row, lane)
        sch.unroll(row)
    else:
        sch.unroll(yi)
        sch.compute_at(stages.rows, yi, preserve_unit_loops=True)
        *_, f, lane = sch.get_loops(stages.rows)
        sch.unroll(f)
    sch.vectorize(lane)


def _sums(work: Work, sums: Block, loop: Loop, plan: WinogradPlan) -> None:
    """for element: for some tiles: acc[tiles][blocks][lanes] = 0; for k: acc += ...; store."""
    sch, lanes = work.sch, plan.lanes
    weight = weight_of(Facts(sch, sums))
    sch.compute_at(sums, loop, preserve_unit_loops=True)
    o, e, f, step, tile, lane, k = list(sch.get_loops(sums))[-7:]
    part, lane = sch.split(lane, [None, plan.products.lanes])
    sch.reorder(e, f, step, part, k, tile, o, lane)
    copy = sch.cache_write(sums, 0, "local")
    sch.reverse_compute_at(copy, part)
    work.done.add(Facts(sch, copy).name)
    k = prefetch_while_summing(sch, f, k, weight)
    *_, copied = sch.get_loops(copy)
    vectorize(sch, copied, lanes)
    sch.unroll(tile)
    sch.unroll(o)
    vectorize(sch, lane, lanes)
    work.finish.append(lambda: start_sums(sch, sums, k, 2))


def _inputs(sch: Schedule, stages: WinogradStages, loop: Loop | None, plan: WinogradPlan) -> None:
    """for tile: for channels: for row of the tile: B^T d, times B."""
    if loop is not None:
        sch.compute_at(stages.inputs, loop, preserve_unit_loops=True)
    *outer, e, f, step, tile, c = list(sch.get_loops(stages.inputs))
    if plan.transform_columns:
        _columns(sch, stages, plan, (e, f, step, tile, c))
    else:
        co, ci = sch.split(c, [None, plan.lanes])  # a vector at a time: a tile is 36 of them
        sch.reorder(step, tile, co, e, f, ci)
        sch.unroll(e)
        sch.unroll(f)
        sch.vectorize(ci)
        sch.compute_at(stages.columns, e, preserve_unit_loops=True)
        *_, z, lane = sch.get_loops(stages.columns)
        sch.unroll(z)
        sch.vectorize(lane)
    if loop is None:
        sch.parallel(sch.fuse(*outer, step, tile))


def _columns(
    sch: Schedule, stages: WinogradStages, plan: WinogradPlan, loops: Sequence[Loop]
) -> None:
    """for block of channels: for column: B^T d; for row: times B.

    All vectors of a line of the cache are stored one after the other.
    """
    e, f, step, tile, c = loops
    co, part, ci = sch.split(c, [None, BLOCK // plan.lanes, plan.lanes])
    sch.reorder(step, tile, co, e, part, f, ci)
    sch.compute_at(stages.columns, co, preserve_unit_loops=True)
    sch.fuse(e, part)
    sch.unroll(f)
    sch.vectorize(ci)
    *_, row, z, lane = sch.get_loops(stages.columns)
    half, lane = sch.split(lane, [None, plan.lanes])
    sch.reorder(z, half, row, lane)
    sch.fuse(z, half)
    sch.unroll(row)
    sch.vectorize(lane)
