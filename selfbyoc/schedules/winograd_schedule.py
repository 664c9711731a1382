"""The schedule of Winograd convolutions: a parallel region for the image, and one or two more."""

from __future__ import annotations

from typing import Any

from .blocks import Facts, divisor, facts
from .direct_tiles import Work
from .machine import Machine
from .steps import parallel_over, vectorize
from .winograd import LANES

STAGES = ("image", "columns", "inputs", "sums", "rows", "pixels")


def join(sch: Any) -> dict[str, Facts]:
    """The stages by name. What lies between the pixels of one convolution and the image of the next
    is inlined: both have their channels last.
    """
    for image in [b for b in facts(sch) if b.name.endswith("_wino_image")]:
        for block in _between(image):
            sch.compute_inline(block.block)
    return {b.name: b for b in facts(sch) if "_wino_" in b.name}


def _between(image: Facts) -> list[Facts]:
    """The elementwise blocks, first to last, on the only way from another convolution's pixels."""
    found: list[Facts] = []
    block = image
    while len(block.producers) == 1:
        (block,) = block.producers
        if block.name.endswith("_wino_pixels"):
            return found[::-1]
        if block.reduction or len(block.consumers) > 1:
            return []
        found.append(block)
    return []


def transform_all(work: Work, blocks: dict[str, Facts]) -> None:
    """Every Winograd convolution of a schedule."""
    for name in blocks:
        if name.endswith("_wino_sums"):
            transform(work, blocks, name.removesuffix("_wino_sums"))


def transform(work: Work, blocks: dict[str, Facts], name: str) -> None:
    """for block of tiles: transform its inputs; for channels: products, and their transforms."""
    sch = work.sch
    part = {stage: blocks[f"{name}_wino_{stage}"] for stage in STAGES}
    tile, pair = _shape(part["sums"], work.cpu)
    # 1. The image once with its channels last: rows in parallel.
    _image(work, part["image"])
    # 2. A task is a block of tiles; a step of it one or two vectors of output channels.
    block, o, t, y, x, lane = sch.get_loops(part["pixels"].block)
    step, oi = sch.split(o, [None, pair])
    sch.reorder(block, step, t, oi, y, x, lane)
    sch.unroll(y)
    sch.unroll(x)
    vectorize(sch, lane, work.cpu.lanes("float32"))
    _rows(work, part["rows"], oi)
    alone = part["sums"].shape[0] >= 2 * work.cpu.cores
    _sums(work, part["sums"], step, tile)
    _inputs(work, part["inputs"], part["columns"], block if alone else None)
    sch.parallel(block if alone else sch.fuse(block, step))
    work.done |= {b.name for b in part.values()}


def _shape(sums: Facts, cpu: Machine) -> tuple[int, int]:
    """Tiles and blocks of channels whose sums are in registers: 14 x 2 of 32, 6 x 1 of 16."""
    if cpu.vector_registers >= 32 and cpu.lanes("float32") >= LANES:
        pair = 2 if sums.shape[1] % 2 == 0 else 1
        return divisor(sums.shape[4], 14), pair
    return divisor(sums.shape[4], 6), 1


def _image(work: Work, image: Facts) -> None:
    sch = work.sch
    n, y, x, c = sch.get_loops(image.block)
    co, ci = sch.split(c, [None, LANES])
    sch.reorder(n, y, co, x, ci)
    vectorize(sch, ci, work.cpu.lanes("float32"))
    parallel_over(sch, [n, y], image.size)


def _unrolled(work: Work, block: Facts, count: int) -> None:
    *_, lane = sch_loops = list(work.sch.get_loops(block.block))
    for loop in sch_loops[-1 - count : -1]:
        work.sch.unroll(loop)
    vectorize(work.sch, lane, work.cpu.lanes("float32"))


def _rows(work: Work, rows: Facts, loop: Any) -> None:
    work.sch.compute_at(rows.block, loop, preserve_unit_loops=True)
    work.sch.set_scope(rows.block, 0, "local")
    _unrolled(work, rows, 2)


def _sums(work: Work, sums: Facts, loop: Any, tile: int) -> None:
    """for element: for some tiles: acc[pair][tiles][16] = 0; for k: acc += ...; store."""
    sch, lanes = work.sch, work.cpu.lanes("float32")
    sch.compute_at(sums.block, loop, preserve_unit_loops=True)
    o, e, f, t, lane, k = list(sch.get_loops(sums.block))[-6:]
    to, ti = sch.split(t, [None, tile])
    sch.reorder(e, f, to, k, ti, o, lane)
    copy = sch.cache_write(sums.block, 0, "local")
    sch.reverse_compute_at(copy, to)
    work.done.add(Facts(sch, copy).name)
    *_, copied = sch.get_loops(copy)
    vectorize(sch, copied, lanes)
    sch.unroll(ti)
    sch.unroll(o)
    vectorize(sch, lane, lanes)
    work.finish.append(lambda: _start(sch, sums, k))


def _start(sch: Any, sums: Facts, k: Any) -> None:
    init = sch.decompose_reduction(sums.block, k)
    *_, ti, o, lane = sch.get_loops(init)
    sch.vectorize(lane)
    sch.unroll(o)
    sch.unroll(ti)


def _inputs(work: Work, inputs: Facts, columns: Facts, loop: Any | None) -> None:
    sch = work.sch
    if loop is not None:
        sch.compute_at(inputs.block, loop, preserve_unit_loops=True)
    *outer, e, f, t, c = list(sch.get_loops(inputs.block))
    co, ci = sch.split(c, [None, LANES])
    sch.reorder(t, co, e, f, ci)
    sch.unroll(e)
    sch.unroll(f)
    vectorize(sch, ci, work.cpu.lanes("float32"))
    sch.compute_at(columns.block, co, preserve_unit_loops=True)
    sch.set_scope(columns.block, 0, "local")
    _unrolled(work, columns, 2)
    if loop is None:
        sch.parallel(sch.fuse(*outer, t))
