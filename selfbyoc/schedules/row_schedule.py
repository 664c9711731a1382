"""Schedules over tiles of rows (row_tiles.py): products in registers, melted into their readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .blocks import Facts, divisor
from .machine import Machine
from .row_tiles import Rows
from .steps import Finish, parallel_over, vectorize, vectorize_injective

TASK_TILES = 8  # tiles of a task at most: the weights are read once for 64 rows, which stay in L2


@dataclass(frozen=True)
class Loops:
    """The loops of a tiled epilogue: outer ones and tasks, panels of columns, tiles of rows."""

    outer: list[Any]
    panel: Any
    tile: Any


def task_tiles(rows: Rows, cpu: Machine) -> int:
    """Tiles of rows of one task: as many as leave each core one."""
    tasks = max(1, -(-cpu.cores // max(1, rows.tasks)))
    return divisor(rows.tiles[-1], max(1, min(TASK_TILES, rows.tiles[-1] // tasks)))


def tile_rows(sch: Any, block: Facts, rows: Rows, tiles: int, cpu: Machine) -> Loops:
    """for outer, task, panel, tile: a register tile of [outer, tile, block, row, lane]."""
    *outer, tile, blocks, row, lane = list(sch.get_loops(block.block))[-len(block.axes) :]
    task, tile = sch.split(tile, [None, tiles])
    panel, within = sch.split(blocks, [None, _blocks_of_tile(block, rows, tiles, cpu)])
    sch.reorder(*outer, task, panel, tile, row, within, lane)
    for loop in (row, within):
        sch.unroll(loop)
    vectorize(sch, lane, cpu.lanes(block.dtype))
    return Loops([*outer, task], panel, tile)


def _blocks_of_tile(block: Facts, rows: Rows, tiles: int, cpu: Machine) -> int:
    """Blocks of columns such that a tile has 16 accumulators where there are 32 registers, else 8.

    Somewhat fewer, if the panels then fall more evenly on the cores.
    """
    blocks = block.spatial[-3].extent
    per_block = max(1, block.spatial[-1].extent // cpu.lanes(block.dtype))
    accumulators = 16 if cpu.vector_registers >= 32 else 8
    # Few rows are bound by reading the weights: 4 blocks at once are as fast as 8 (1 x 768 x 768).
    most = divisor(blocks, max(1, min(4, accumulators // (rows.height * per_block))))
    fitting = [d for d in range(most, most // 2, -1) if blocks % d == 0]
    tasks = rows.tasks * rows.tiles[-1] // tiles
    return min(fitting, key=lambda d: -(-tasks * (blocks // d) // cpu.cores) * d)


def product_at(sch: Any, product: Facts, at: Any, cpu: Machine, split: int = 0) -> Finish:
    """A product in registers under the tile that reads it: k outside, rows unrolled, lanes vectors.

    `split` cuts k into pieces, for an operand that lies in blocks of them.
    """
    sch.compute_at(product.block, at, preserve_unit_loops=True)
    sch.set_scope(product.block, 0, "local")
    *_, blocks, row, lane, k = sch.get_loops(product.block)
    ks = sch.split(k, [None, split]) if split and _extent(sch, k) % split == 0 else [k]
    sch.reorder(*ks, row, blocks, lane)
    for loop in (row, blocks):
        sch.unroll(loop)
    before = len(sch.get_loops(product.block))
    vectorize(sch, lane, cpu.lanes(product.dtype))
    inside = 3 + len(sch.get_loops(product.block)) - before
    return lambda: _start(sch, product, ks[0], inside)


def _extent(sch: Any, loop: Any) -> int:
    return int(sch.get(loop).extent)


def _start(sch: Any, product: Facts, k: Any, inside: int) -> None:
    """The accumulators' start in front of the loop over k, in the same vectors."""
    *unrolled, lane = list(sch.get_loops(sch.decompose_reduction(product.block, k)))[-inside:]
    for loop in unrolled:
        sch.unroll(loop)
    sch.vectorize(lane)


def store(sch: Any, result: Facts, outputs: Facts, at: Any, rows: Rows, cpu: Machine) -> None:
    """Write a tile's real elements from registers; all at the end if rows are numbered through."""
    if rows.numbered_through:
        vectorize_injective(sch, result, cpu)
        return
    sch.reverse_compute_at(result.block, at, preserve_unit_loops=True)
    sch.set_scope(outputs.block, 0, "local")
    *_, row, column = sch.get_loops(result.block)
    sch.unroll(row)
    vectorize(sch, column, cpu.lanes(result.dtype))


STAGES = ("products", "outputs", "result")


def dense_tiles(
    sch: Any,
    stages: dict[str, Facts],
    rows: Rows,
    cpu: Machine,
    before: Sequence[str] = (),
    split: int = 0,
) -> tuple[Any | None, list[Finish]]:
    """The last dense of a composite: `products` and `outputs` in tiles, `result` stored from them.

    -> the loop of tasks, under which the stages `before` it can be melted, and what is to be done
    last. Where there are fewer tasks than cores, tiles are spread over the columns too and there
    is no such loop (None). dense-gelu-dense melted is 0.93 to 1.14 times as fast as spread, for
    16 to 512 rows of 256 x 1024 and 768 x 3072 (2 x Zen 5, Nov 2026).
    """
    tiles = task_tiles(rows, cpu)
    loops = tile_rows(sch, stages["outputs"], rows, tiles, cpu)
    finish = [product_at(sch, stages["products"], loops.tile, cpu, split)]
    store(sch, stages["result"], stages["outputs"], loops.tile, rows, cpu)
    for name in sorted(set(stages) - {*STAGES, *before}):
        vectorize_injective(sch, stages[name], cpu)  # a weight that is no constant is packed first
    if before and rows.tasks * rows.tiles[-1] // tiles >= cpu.cores:
        return parallel_over(sch, loops.outer), finish
    parallel_over(sch, [*loops.outer, loops.panel])
    return None, finish


def melt_rows(
    sch: Any,
    stages: dict[str, Facts],
    last: str,
    before: Sequence[str],
    task: Any | None,
    cpu: Machine,
) -> list[Finish]:
    """The stages of each row, in front of `last` [row ..., k]; rows in parallel or under a task."""
    lanes = cpu.lanes("float32")
    if task is not None:
        sch.compute_at(stages[last].block, task, preserve_unit_loops=True)
    *rows, column = list(sch.get_loops(stages[last].block))[-len(stages[last].axes) :]
    row = sch.fuse(*rows) if len(rows) > 1 else rows[0]
    _vectorize_columns(sch, column, lanes)
    if task is None:
        row = _parallel_rows(sch, row, stages[last])
    for name in before:
        sch.compute_at(stages[name].block, row, preserve_unit_loops=True)
    finish: list[Finish] = []
    for stage in (stages[name] for name in before):
        if stage.reduction:
            finish += _reduce_row(sch, stage, stages[last], lanes)
        elif len(stage.spatial) == len(stages[last].spatial):
            _vectorize_columns(sch, list(sch.get_loops(stage.block))[-1], lanes)
    return finish


def _parallel_rows(sch: Any, row: Any, block: Facts) -> Any:
    """Rows in parallel, unless there is less to do than it costs to start (1-2 us)."""
    if block.size >= 4096:
        sch.parallel(row)
    return row


def _vectorize_columns(sch: Any, loop: Any, lanes: int) -> None:
    """Whole vectors; narrower ones where the extent asks for it."""
    width = divisor(_extent(sch, loop), lanes)
    if width > 1:
        sch.vectorize(sch.split(loop, [None, width])[1])


def _reduce_row(sch: Any, block: Facts, last: Facts, lanes: int) -> list[Finish]:
    """Partial results in vectors (a block with a lane axis), or the one result of them."""
    *_, lane, k = sch.get_loops(block.block)
    if len(block.spatial) < len(last.spatial):
        sch.unroll(k)
        return []
    sch.reorder(k, lane)
    before = len(sch.get_loops(block.block))
    vectorize(sch, lane, lanes)
    inside = 1 + len(sch.get_loops(block.block)) - before
    return [lambda: _start(sch, block, k, inside)]
