"""Schedules over tiles of rows (row_tiles.py): products in registers, melted into their readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....language.decisions import choose
from ....machine import Machine
from ...steps.blocks import Facts, divisor
from ...steps.candidates import divisors, next_to
from ...steps.loops import Finish, parallel_over, vectorize, vectorize_injective
from .loops import task_tiles, tile_rows
from .product import PRODUCTS, extent_of, product_at, start_in_vectors
from .stages import LANES
from .tiles import Rows


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


STAGES = (*PRODUCTS, "outputs", "result")


def dense_tiles(
    sch: Any,
    stages: dict[str, Facts],
    rows: Rows,
    cpu: Machine,
    before: Sequence[str] = (),
    melts: bool = False,
    split: int = 0,
) -> tuple[Any | None, list[Finish]]:
    """The last dense of a composite: `products` and `outputs` in tiles, `result` stored from them.

    -> the loop of tasks, under which the stages `before` it, from the last one on, can be melted,
    and what is to be done last. Where tasks of rows do not pay there is no such loop (None).
    """
    units = stages["outputs"].spatial[-3].extent * stages["outputs"].spatial[-1].extent
    held = melts and units * stages[before[0]].shape[-1] * WEIGHT_BYTES <= cpu.l2_bytes // 2
    usual = _melted(rows, cpu) if held else 0
    sizes = next_to(divisors(rows.tiles[-1], rows.tiles[-1]), task_tiles(rows, cpu))
    melted = choose("tiles_of_a_task", [0, *sizes] if melts else [0], usual)  # 0: no such tasks
    loops = tile_rows(sch, stages["outputs"], rows, cpu, melted)
    finish = product_at(sch, stages, "products", loops, cpu, split)
    store(sch, stages["result"], stages["outputs"], loops.tile, rows, cpu)
    for name in sorted(set(stages) - {*STAGES, *before}):
        vectorize_injective(sch, stages[name], cpu)  # a weight that is no constant is packed first
    task = parallel_over(sch, loops.parallel)
    return (task if melted else None), finish


# A task of rows reads the whole weight: it has to stay in L2, and few rows are not worth it.
# layer_norm and dense of 128 rows, 384 to 1536, with weights in memory: 417 us by rows, 325 by
# columns, each of which one core reads, ahead of time; with weights in L3 307 and 310.
WEIGHT_BYTES = 4
LEAST_ROWS = 16


def _melted(rows: Rows, cpu: Machine) -> int:
    """Tiles of a task of rows, or 0 where such tasks are short or leave a core idle for long."""
    tiles = task_tiles(rows, cpu)
    if tiles * rows.height < LEAST_ROWS:
        return 0
    tasks = rows.tasks * rows.tiles[-1] // tiles
    return tiles if 8 * tasks >= 7 * cpu.cores * -(-tasks // cpu.cores) else 0


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
    count = extent_of(sch, rows[-1])
    usual = _rows_at_once(count, stages[last].shape[-1])
    at_once = choose(f"{last}.rows_at_once", next_to(divisors(count, 8), usual), usual)
    row = sch.split(sch.fuse(*rows) if len(rows) > 1 else rows[0], [None, at_once])[0]
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


def _rows_at_once(rows: int, count: int) -> int:
    """The sums of one row wait for each other, those of several do not: layer_norm of 128x768 takes
    8.0 us row by row and 5.2 by fours. Short rows mostly fold lanes: softmax of 1536x128 25 and 28.
    """
    return divisor(rows, 4) if count >= 16 * LANES else 1


def _parallel_rows(sch: Any, row: Any, block: Facts) -> Any:
    """Rows in parallel, unless there is less to do than it costs to start (1-2 us)."""
    if block.size >= 4096:
        sch.parallel(row)
    return row


def _vectorize_columns(sch: Any, loop: Any, lanes: int) -> None:
    """Whole vectors; narrower ones where the extent asks for it."""
    width = divisor(extent_of(sch, loop), lanes)
    if width > 1:
        sch.vectorize(sch.split(loop, [None, width])[1])


def _reduce_row(sch: Any, block: Facts, last: Facts, lanes: int) -> list[Finish]:
    """Partial results in vectors (a block with a lane axis), or the one result of them."""
    *_, row, lane, k = sch.get_loops(block.block)
    if len(block.spatial) < len(last.spatial):
        sch.unroll(k)
        return []
    sch.reorder(k, row, lane)
    sch.unroll(row)
    before = len(sch.get_loops(block.block))
    vectorize(sch, lane, lanes)
    inside = 2 + len(sch.get_loops(block.block)) - before
    return [lambda: start_in_vectors(sch, block, k, inside)]
