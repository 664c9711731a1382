"""The schedule of Winograd convolutions: a parallel region for the image, and one or two more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....language.decisions import choose
from ....machine import Machine
from ...steps.blocks import Facts, divisor, facts
from ...steps.loops import ask_while_summing, parallel_over, vectorize
from ..conv.direct_tiles import Work, image_of
from .compute import LANES

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


def transform_all(work: Work, blocks: dict[str, Facts], ops: Any) -> None:
    """Every Winograd convolution of a schedule."""
    for name in blocks:
        if name.endswith("_wino_sums"):
            stem = name.removesuffix("_wino_sums")
            part = {stage: blocks[f"{stem}_wino_{stage}"] for stage in STAGES}
            transform(work, part, getattr(ops, stem).outputs[0][0])


def transform(work: Work, part: dict[str, Facts], out: Sequence[int]) -> None:
    """for block of tiles: transform its inputs; for channels: products, and their transforms."""
    sch = work.sch
    sums, pixels = part["sums"], part["pixels"]
    stem, tasks = sums.name.removesuffix("_wino_sums"), math.prod(sums.shape[:2])
    ways = [True, False] if tasks > 1 else [False]
    apart = choose(f"{stem}.blocks_apart", ways, _blocks_apart(sums, work.cpu))
    shape = _register_tile(sums, work.cpu, 0 if apart else tasks)
    pair = shape[1]
    # 1. The image once with its channels last: rows in parallel.
    _image(work, part["image"])
    # 2. A task is a block of tiles; a step of it some vectors of output channels, whose pixels it
    # writes as they lie in the result.
    reader = image_of(pixels)
    if reader is not None and reader.shape == tuple(out):
        outer, step = _result(work, reader, pixels, pair)
    else:
        outer, step = _pixels(work, pixels, pair)
    # 3. Tile by tile out of the sums, row by row of a tile: what is between is in registers.
    _transforms(work, pixels, part["rows"], pair)
    # 4. Blocks in parallel, each with its inputs; or else channels, whose weights one core reads.
    if not apart:
        sch.reorder(step, *outer)
    _sums(work, sums, step if apart else outer[-1], shape)
    _inputs(work, part["inputs"], part["columns"], outer[-1] if apart else None)
    sch.parallel(sch.fuse(*outer) if apart else sch.fuse(step, *outer))
    work.done |= {b.name for b in part.values()}


def _blocks_apart(sums: Facts, cpu: Machine) -> bool:
    """Whether blocks are the tasks: even, and each core keeps all weights in its L2."""
    tasks = math.prod(sums.shape[:2])
    weights = 4 * sums.reduction[0].extent * math.prod(sums.shape[2:5]) * LANES
    return -(-tasks // cpu.cores) * cpu.cores <= 1.1 * tasks and weights <= cpu.l2_bytes


def _register_tile(sums: Facts, cpu: Machine, tasks: int) -> tuple[int, int, int]:
    """Tiles, blocks of channels, and lanes of a block, whose sums are in registers."""
    tiles, stem = sums.shape[5], sums.name.removesuffix("_wino_sums")
    shapes = register_tiles(tiles, sums.shape[2], cpu, tasks)
    return choose(f"{stem}.tile_of_{tiles}", shapes[:2], shapes[0])


def register_tiles(
    tiles: int, blocks: int, cpu: Machine, tasks: int = 0
) -> list[tuple[int, int, int]]:
    """Tiles, blocks of channels, and lanes of a block, whose sums are in registers; best first.

    Two loads and two products go at once, and a product takes four cycles: 8 x 2 or 7 x 2 vectors
    of 32 registers in AVX-512, 2 x 4 of 16 in AVX2. 1 KB at most: more sums spill. Where
    channels are tasks, `tasks` for each step, these should be even.
    """
    vector = min(LANES, cpu.lanes("float32"))

    def fits(rows: int, wide: int, lanes: int) -> bool:
        vectors = wide * lanes // vector
        small = rows * wide * lanes <= 256 and (rows + 1) * vectors < cpu.vector_registers
        return small and tiles % rows == 0 and blocks % wide == 0

    def use(shape: tuple[int, int, int]) -> tuple[float, float]:
        rows, vectors = shape[0], shape[1] * shape[2] // vector
        products, loads = rows * vectors, rows + vectors
        steps = blocks // shape[1] * tasks or cpu.cores
        even = steps / (-(-steps // cpu.cores) * cpu.cores)
        return min(1, products / loads) * min(1, products / 8) * even, products / loads

    widths = [(1, w) for w in (LANES // 4, LANES // 2) if w >= vector]
    shapes = [(r, *w) for r in range(1, 16) for w in [*widths, *((n, LANES) for n in (1, 2, 3))]]
    return sorted((s for s in shapes if fits(*s)), key=use, reverse=True)


def _image(work: Work, image: Facts) -> None:
    sch = work.sch
    n, y, x, c = sch.get_loops(image.block)
    co, ci = sch.split(c, [None, LANES])
    sch.reorder(n, y, co, x, ci)
    vectorize(sch, ci, work.cpu.lanes("float32"))
    parallel_over(sch, [n, y], image.size)


def _pixels(work: Work, pixels: Facts, pair: int) -> tuple[list[Any], Any]:
    """Pixels that another convolution reads, or several ops: as they are."""
    i, j, o, *_ = work.sch.get_loops(pixels.block)
    step, _ = work.sch.split(o, [None, pair])
    return [i, j], step


def _result(work: Work, reader: Facts, pixels: Facts, pair: int) -> tuple[list[Any], Any]:
    """The one op that reads the pixels, and the pixels of a step under it."""
    sch, lanes = work.sch, work.cpu.lanes("float32")
    n, o, y, x = sch.get_loops(reader.block)
    images, tall = reader.shape[0] // pixels.shape[0], pixels.shape[3]
    i, ni = sch.split(n, [None, images])
    j, yi = sch.split(y, [None, tall // images])
    step, oi = sch.split(o, [None, pair * LANES])
    sch.reorder(i, j, step, ni, oi, yi, x)
    wide = reader.shape[3]
    # LLVM splits a short row of any length into whole vectors and a rest; a long one must divide.
    width = wide if wide <= 4 * lanes else divisor(wide, 4 * lanes)
    if width * 2 >= lanes:
        vectorize(sch, sch.split(x, [None, width])[1], lanes)
    sch.compute_at(pixels.block, step, preserve_unit_loops=True)
    work.done.add(reader.name)
    return [i, j], step


def _transforms(work: Work, pixels: Facts, rows: Facts, pair: int) -> None:
    """for channels: for tile: for row of it: A^T sums, times A."""
    sch, lanes = work.sch, work.cpu.lanes("float32")
    m = rows.shape[4]
    o, y, x, lane = list(sch.get_loops(pixels.block))[-4:]
    yo, yi = sch.split(y, [None, m])
    xo, xi = sch.split(x, [None, m])
    part, lane = sch.split(lane, [None, min(LANES, lanes)])
    sch.reorder(o, yo, xo, part, yi, xi, lane)
    sch.unroll(yi)
    sch.unroll(xi)
    vectorize(sch, lane, lanes)
    sch.compute_at(rows.block, yi, preserve_unit_loops=True)
    *_, f, lane = sch.get_loops(rows.block)
    sch.unroll(f)
    vectorize(sch, lane, lanes)


def _sums(work: Work, sums: Facts, loop: Any, shape: tuple[int, int, int]) -> None:
    """for element: for some tiles: acc[tiles][blocks][lanes] = 0; for k: acc += ...; store."""
    sch, lanes = work.sch, work.cpu.lanes("float32")
    sch.compute_at(sums.block, loop, preserve_unit_loops=True)
    o, e, f, t, lane, k = list(sch.get_loops(sums.block))[-6:]
    to, ti = sch.split(t, [None, shape[0]])
    part, lane = sch.split(lane, [None, shape[2]])
    sch.reorder(e, f, to, part, k, ti, o, lane)
    copy = sch.cache_write(sums.block, 0, "local")
    sch.reverse_compute_at(copy, part)
    work.done.add(Facts(sch, copy).name)
    (weight,) = sums.buffers_along(sums.spatial[-1])
    k = ask_while_summing(sch, f, k, weight)
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
    """for tile: for channels: for row of the tile: B^T d, times B."""
    sch, lanes = work.sch, work.cpu.lanes("float32")
    if loop is not None:
        sch.compute_at(inputs.block, loop, preserve_unit_loops=True)
    *outer, e, f, t, c = list(sch.get_loops(inputs.block))
    co, ci = sch.split(c, [None, min(LANES, lanes)])  # a vector at a time: a tile is 36 of them
    sch.reorder(t, co, e, f, ci)
    sch.unroll(e)
    sch.unroll(f)
    vectorize(sch, ci, lanes)
    sch.compute_at(columns.block, e, preserve_unit_loops=True)
    *_, z, lane = sch.get_loops(columns.block)
    sch.unroll(z)
    vectorize(sch, lane, lanes)
    if loop is None:
        sch.parallel(sch.fuse(*outer, t))
