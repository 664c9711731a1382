"""The schedule of attention: all of a block of queries behind one another, blocks in parallel."""

from __future__ import annotations

from typing import Any

from ....language.decisions import choose
from ....machine import Machine, machine
from ...steps.blocks import Facts, facts
from ...steps.loops import Finish, vectorize, vectorize_injective
from ...steps.reductions import Tile, accumulate
from .few import SOFTMAX_STAGES, schedule_few
from .shape import ROWS, Shape, shape_of

# Multiplications below which a parallel region costs more (1-2 us) than it saves.
LEAST_PRODUCTS = 1 << 17
STAGES = (
    "queries", "products", "partial", "scores", *SOFTMAX_STAGES, "weights", "values", "weighted",
    "normalised", "result",
)  # fmt: skip


def schedule(sch: Any, ops: Any, target: Any) -> None:
    """for (batch, block of queries) in parallel: queries, scores, peak, power, total; result."""
    cpu, shape = machine(target), shape_of(ops)
    stages = {block.name: block for block in facts(sch)}
    # 1. Constants, and whatever reshapes the arguments, are read in place.
    for name in [n for n in stages if n not in STAGES]:
        sch.compute_inline(stages.pop(name).block)
    if shape.few:
        return schedule_few(sch, stages, shape, cpu)
    # 2. The result in tiles of 8 queries; one block of queries is one task.
    task, tile = _result_tiles(sch, stages, shape, cpu)
    finish = [_product(sch, stages["weighted"], tile, cpu)]
    # 3. Everything before it, for the same block of queries: the scores stay in L1 or L2.
    for name in ("inverse", "total", "power", "peak", "scores"):
        sch.compute_at(stages[name].block, task, preserve_unit_loops=True)
    finish.append(_product(sch, stages["products"], _score_tiles(sch, stages["scores"], cpu), cpu))
    sch.compute_at(stages["queries"].block, task, preserve_unit_loops=True)
    finish += [_down_the_lanes(sch, stages[name], cpu) for name in ("peak", "total")]
    for name in ("queries", "power", "inverse"):
        vectorize(sch, sch.get_loops(stages[name].block)[-1], cpu.lanes("float32"))
    # 4. Tasks in parallel; values that had to be laid out are so before.
    if shape.products >= LEAST_PRODUCTS:
        sch.parallel(task)
    if "values" in stages:
        vectorize_injective(sch, stages["values"], cpu)
    for last in finish:
        last()


def _width(cpu: Machine) -> int:
    """Lanes of a tile of 8 rows: 16 accumulators fit 32 registers, 8 fit 16."""
    return cpu.lanes("float32") * (2 if cpu.vector_registers >= 32 else 1)


def _result_tiles(
    sch: Any, stages: dict[str, Facts], shape: Shape, cpu: Machine
) -> tuple[Any, Any]:
    """Tile `normalised`, store each tile's real elements; -> the loops of tasks and of tiles."""
    *outer, tiles, row, column = sch.get_loops(stages["normalised"].block)
    block, tile = sch.split(tiles, [None, shape.lanes // ROWS])
    panel, lanes = sch.split(column, [None, _tile_width(stages["normalised"], cpu)])
    # A panel of columns of the values serves all tiles of the block while it is in L1.
    outside, inside = (
        (panel, tile) if choose("panels_outside", (True, False), True) else (tile, panel)
    )
    sch.reorder(*outer, block, outside, inside, row, lanes)
    task = sch.fuse(*outer, block)
    sch.unroll(row)
    vectorize(sch, lanes, cpu.lanes("float32"))
    sch.reverse_compute_at(stages["result"].block, inside, preserve_unit_loops=True)
    sch.set_scope(stages["normalised"].block, 0, "local")
    loops = list(sch.get_loops(stages["result"].block))
    sch.unroll(loops[-3 if shape.interleaved else -2])
    vectorize(sch, loops[-1], cpu.lanes("float32"))
    return task, inside


def _tile_width(block: Facts, cpu: Machine) -> int:
    extent = block.spatial[-1].extent
    return _width(cpu) if extent % _width(cpu) == 0 else cpu.lanes("float32")


def _score_tiles(sch: Any, scores: Facts, cpu: Machine) -> Any:
    """Tiles of 8 keys; -> the loop of tiles."""
    *_, keys, lane = sch.get_loops(scores.block)
    tile, row = sch.split(keys, [None, ROWS])
    group, lane = sch.split(lane, [None, _tile_width(scores, cpu)])
    sch.reorder(tile, group, row, lane)
    sch.unroll(row)
    vectorize(sch, lane, cpu.lanes("float32"))
    return group


def _product(sch: Any, block: Facts, at: Any, cpu: Machine) -> Finish:
    """A product of 8 rows in registers under its reader's tile."""
    sch.compute_at(block.block, at, preserve_unit_loops=True)
    sch.set_scope(block.block, 0, "local")
    tile = Tile(block.spatial[-2].position, ROWS, _tile_width(block, cpu))
    return accumulate(sch, block, tile, cpu.lanes("float32"))


def _down_the_lanes(sch: Any, block: Facts, cpu: Machine) -> Finish:
    """Reduce over keys, each lane for itself, in registers."""
    sch.set_scope(block.block, 0, "local")
    *_, lane, key = sch.get_loops(block.block)
    sch.reorder(key, lane)
    vectorize(sch, lane, cpu.lanes("float32"))

    def decompose() -> None:
        *_, start = sch.get_loops(sch.decompose_reduction(block.block, key))
        vectorize(sch, start, cpu.lanes("float32"))

    return decompose
