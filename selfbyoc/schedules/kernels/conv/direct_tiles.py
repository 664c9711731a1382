"""Parts of the schedule of direct convolutions whose lanes are pixels: padded copies and register
tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ....language.decisions import choose
from ....machine import Machine
from ...steps.blocks import Facts, divisor
from ...steps.candidates import best, divisors
from ...steps.loops import Finish, decompose, parallel_over, vectorize
from .lanes import Plan

# Of vectors in a body without loops: 3x3 taps of 16 registers, or 5x5 of 2. Of more LLVM loads
# operands so early that sums spill: 5x5, 32 to 96 channels on 27x27 pixels take 460 us, and 260
# with a loop over the window's rows (Zen 5, Nov 2026).
MOST_PRODUCTS = 160


@dataclass
class Work:
    """A schedule in the making."""

    sch: Any
    cpu: Machine
    finish: list[Finish] = field(default_factory=list)
    done: set[str] = field(default_factory=set)


def pad_rows(work: Work, block: Facts, p: Plan) -> None:
    """A padded copy in parallel: each core takes, by and large, what its windows read."""
    n, c = list(work.sch.get_loops(block.block))[:2]
    phase, rows = _copy_rows(work, block, p)
    outer = [n, c]
    if all(len(reader.spatial) == 6 for reader in block.consumers):  # tasks are blocks of rows
        group, row = work.sch.split(rows, [None, p.rows])
        work.sch.reorder(n, group, c, phase, row)
        outer = [n, group, c]
    parallel_over(work.sch, outer, block.size / 4)
    work.done.add(block.name)


def _copy_rows(work: Work, block: Facts, p: Plan) -> Any:
    """A copy row by row, horizontal phases innermost: contiguous reads; -> phase and row loops.

    64x56x56 at stride 2, one core, LLVM 10: 52 us; with the phases outermost 83. LLVM 22: 16 both.
    """
    *_, phase, lane = work.sch.get_loops(block.block)
    row, column = work.sch.split(lane, [None, p.pitch])
    vertical, horizontal = work.sch.split(phase, [None, p.phases[1]])
    work.sch.reorder(vertical, row, column, horizontal)
    work.sch.unroll(vertical)
    work.sch.unroll(horizontal)
    if p.phases[1] > 1 or p.pitch > 4 * work.cpu.lanes(block.dtype):
        return vertical, row
    work.sch.reorder(horizontal, column)
    if p.is_whole:
        work.sch.vectorize(column)  # no padding between rows: nothing to test for each element
    else:
        # The tests are constants then; LLVM 10 makes 6 us of 64x28x28, and 14 of a loop.
        work.sch.unroll(column)
    return vertical, row


def is_copy(name: str) -> bool:
    """Whether a block lays an image out for a convolution."""
    return name.endswith(("_pad", "_wino_image"))


def image_of(block: Facts) -> Facts | None:
    """The one elementwise reader of sums: no copy, and of no other image that is computed."""
    readers = block.consumers
    if len(readers) != 1 or readers[0].reduction or len(readers[0].spatial) != 4:
        return None
    alone = len(images(readers[0])) == 1 and not is_copy(readers[0].name)
    return readers[0] if alone else None


def images(block: Facts) -> list[Facts]:
    """What it reads that is computed, factors for each channel aside, as of a batch norm."""
    return [producer for producer in block.producers if len(producer.shape) > 1]


def _pixels(block: Facts, p: Plan) -> Facts | None:
    """The one reader of the tiles that runs over pixels.

    A single tile stays by itself: region inference would cut it to the lanes in use.
    """
    reader = image_of(block)
    return reader if reader is not None and p.tiles > 1 and _fits(reader, p) else None


def _fits(reader: Facts, p: Plan) -> bool:
    return reader.shape[2:] == (p.height, p.width)


def tile(work: Work, block: Facts, p: Plan, *, parallel: bool = True) -> list[Any]:
    """for task: for tile: acc = 0; for k: acc += ...; tiles = acc;  then the task's pixels out of
    its tiles.
    """
    sch, epilogue, depthwise = work.sch, _pixels(block, p), len(block.spatial) == 5
    pad = next((b for b in block.producers if b.name.endswith("_pad")), None)
    if epilogue is None:
        copy = sch.cache_write(block.block, 0, "local")
        outer = list(sch.get_loops(copy))[: 2 if depthwise else 3]
        _tile_in_registers(work, block, copy, p)
    else:
        outer = _tasks(work, epilogue, 1 if depthwise else block.shape[-3], p)
        tile_under(work, block, p, outer[-1])
        work.done.add(epilogue.name)
    if depthwise and pad is not None and pad.shape[1:3] == (block.shape[1], 1):
        # A channel's image is copied just before its windows: it stays in L1.
        sch.compute_at(pad.block, outer[1], preserve_unit_loops=True)
        _copy_rows(work, pad, p)
        work.done.add(pad.name)
        outer = outer[:2]
    if parallel:
        parallel_over(sch, outer, block.steps / work.cpu.lanes(block.dtype))
    return outer


def tile_under(work: Work, block: Facts, p: Plan, loop: Any) -> None:
    """The tiles that an iteration of a loop reads, computed at its beginning."""
    copy = work.sch.cache_write(block.block, 0, "local")
    work.sch.compute_at(copy, loop, preserve_unit_loops=True)
    _tile_in_registers(work, block, copy, p)


def _tile_in_registers(work: Work, block: Facts, copy: Any, p: Plan) -> None:
    depthwise = len(block.spatial) == 5
    inner = _register_tile(work, block, copy, p, depthwise)
    work.sch.compute_at(block.block, inner, preserve_unit_loops=True)
    loops = list(work.sch.get_loops(block.block))[-len(block.axes) :]
    rows = [] if depthwise else [loops[block.spatial[-3].position]]
    tile = [*rows, loops[block.spatial[-1].position]]
    work.finish.append(accumulate(work.sch, block, tile, work.cpu.lanes(block.dtype)))
    work.done |= {block.name, Facts(work.sch, copy).name}


def _tasks(work: Work, epilogue: Facts, rows: int, p: Plan) -> list[Any]:
    """The pixels and channels of one task inside, in vectors; -> the loops over tasks."""
    sch, lanes = work.sch, work.cpu.lanes("float32")  # of the sums, whatever they are narrowed to
    n, o, y, x = sch.get_loops(epilogue.block)
    chunk, yi = sch.split(y, [None, p.rows])
    b, oi = sch.split(o, [None, rows])
    sch.reorder(n, *((b, chunk) if rows == 1 else (chunk, b)), oi, yi, x)
    # LLVM splits a short row of any length into whole vectors and a rest; a long one must divide.
    width = p.width if p.width <= 4 * lanes else divisor(p.width, 4 * lanes)
    if width * 2 >= lanes:
        vectorize(sch, sch.split(x, [None, width])[1], lanes)
    return [n, b, chunk] if rows == 1 else [n, chunk, b]


def _register_tile(work: Work, block: Facts, copy: Any, p: Plan, depthwise: bool) -> Any:
    """Split the copy out of registers into register tiles; -> the loop around one."""
    sch, lanes = work.sch, work.cpu.lanes(block.dtype)
    *_, r, t, lane = sch.get_loops(copy)
    if depthwise:
        lo, li = sch.split(lane, [None, min(2 * lanes, p.lanes)])
        vectorize(sch, li, lanes)
        return lo
    height, vectors = register_shape(block, block.shape[-3], p.lanes, work.cpu)
    ro, ri = sch.split(r, [None, height])
    lo, li = sch.split(lane, [None, vectors * lanes])
    sch.reorder(t, lo, ro, ri, li)
    sch.unroll(ri)
    vectorize(sch, li, lanes)
    return ro


def register_shape(block: Facts, rows: int, lanes: int, cpu: Machine) -> tuple[int, int]:
    """Channels and vectors of a register tile."""
    usual, vector = _usual_shape(rows, lanes, cpu), cpu.lanes("float32")
    others = [(r, v) for v in divisors(lanes // vector, 4) for r in divisors(rows, 16)]
    fitting = [(r, v) for r, v in others if r * v >= 8 and (r + 1) * v < cpu.vector_registers]

    def loads(shape: tuple[int, int]) -> float:
        return sum(shape) / (shape[0] * shape[1])

    # Tiles with many more loads for each product were never faster (8 x 1 and 16 x 1: +2 to 25%).
    better = [shape for shape in sorted(fitting, key=loads) if loads(shape) < 1.2 * loads(usual)]
    return choose(f"{block.name}.tile", best(better, usual), usual)


def _usual_shape(rows: int, lanes: int, cpu: Machine) -> tuple[int, int]:
    """8 x 2 (up to 14 x 2) of 32 registers, 4 x 2 or 7 x 1 of 16."""
    vector = cpu.lanes("float32")
    if cpu.vector_registers >= 32 and vector >= 16:
        return divisor(rows, 14), max(1, lanes // vector)
    height = divisor(rows, 4)
    return (height, 2) if height >= 3 and lanes >= 2 * vector else (divisor(rows, 8), 1)


def accumulate(
    sch: Any, block: Facts, tile: list[Any], lanes: int, split: Callable[[Any], Any] | None = None
) -> Finish:
    """The sums of a register tile: reduction outermost, its window unrolled, the tile's loops
    inside. `split` cuts the outermost loop, and says which one is now.
    """
    loops = list(sch.get_loops(block.block))[-len(block.axes) :]
    reduction = [loops[a.position] for a in block.reduction]
    sch.reorder(*reduction, *tile)
    *_, ry, rx = reduction
    ry_taps, rx_taps = (int(sch.get(loop).extent) for loop in (ry, rx))
    vectors = -(-math.prod(int(sch.get(loop).extent) for loop in tile) // lanes)
    products = ry_taps * rx_taps * vectors
    either = ry_taps > 1 and MOST_PRODUCTS // 2 <= products <= 3 * MOST_PRODUCTS
    usual = products <= MOST_PRODUCTS
    # A tap's offset is constant then.
    if choose(f"{block.name}.whole_window", (True, False) if either else (usual,), usual):
        sch.unroll(ry)
    if rx_taps <= 7 or ry_taps * rx_taps <= 25:
        sch.unroll(rx)
    for loop in tile[:-1]:
        sch.unroll(loop)
    vectorize(sch, tile[-1], lanes)
    start = split(reduction[0]) if split else reduction[0]
    return lambda: decompose(sch, block.block, start, len(tile) > 1)
