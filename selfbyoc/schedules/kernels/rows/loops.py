"""The loops over tiles of rows (row_tiles.py): register tiles, groups of them that share a panel of
a weight, and which groups each core gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....language.decisions import choose
from ....machine import Machine
from ...steps.blocks import Facts, divisor
from ...steps.candidates import best, divisors, next_to
from ...steps.loops import vectorize
from .tiles import GROUP, ROWS, Rows

MELTED_TILES = 8  # tiles of a task that has stages of its own in front: 64 rows stay in L2


@dataclass(frozen=True)
class Loops:
    """The loops of a tiled epilogue: those that can run in parallel, and the two innermost ones."""

    parallel: list[Any]
    panel: Any  # around all tiles that share a panel of columns
    tile: Any
    rows: int  # of a register tile
    wide: int  # blocks of columns of a panel
    own_columns: bool  # each core has panels of its own, and so reads its share of the weight


def task_tiles(rows: Rows, cpu: Machine) -> int:
    """Tiles of rows of a melted task: as many as leave each core one."""
    tasks = max(1, -(-cpu.cores // max(1, rows.tasks)))
    return divisor(rows.tiles[-1], max(1, min(MELTED_TILES, rows.tiles[-1] // tasks)))


def tile_rows(sch: Any, block: Facts, rows: Rows, cpu: Machine, melted: int = 0) -> Loops:
    """Register tiles of [outer, tile, block, row, lane], in groups of rows times panels of columns.

    Panels outermost, so that each core reads its own share of the weight; rows outermost where
    stages are `melted` into tasks of so many tiles.
    """
    *outer, tile, blocks, row, lane = list(sch.get_loops(block.block))[-len(block.axes) :]
    usual, wide = _group(block, rows, cpu, melted)
    sizes = [melted] if melted else next_to(divisors(rows.tiles[-1], 2 * GROUP), usual)
    tiles = choose(f"{block.name}.group", sizes, usual)
    fitting = best(_fitting(block, rows, cpu), (_height(block, rows, cpu), wide))
    height, wide = choose(f"{block.name}.tile", fitting, fitting[0])
    task, tile = sch.split(tile, [None, tiles])
    panel, within = sch.split(blocks, [None, wide])
    around = [*outer, task, panel] if melted else [panel, *outer, task]
    part, row = sch.split(row, [None, height])
    sch.reorder(*around, tile, part, row, within, lane)
    for loop in (row, within):
        sch.unroll(loop)
    vectorize(sch, lane, cpu.lanes(block.dtype))
    return Loops(around[:-1] if melted else around, around[-1], part, height, wide, not melted)


def _fitting(block: Facts, rows: Rows, cpu: Machine) -> list[tuple[int, int]]:
    """Rows and blocks of register tiles, the largest first; registers are left for operands."""
    vectors, blocks = _vectors(block, cpu), block.spatial[-3].extent
    pairs = [(r, b) for r in divisors(rows.height, ROWS) for b in divisors(blocks, 4)]
    fits = [(r, b) for r, b in pairs if (r + 1) * b * vectors < cpu.vector_registers]
    return sorted(fits, key=lambda tile: tile[0] * tile[1], reverse=True)


def _height(block: Facts, rows: Rows, cpu: Machine) -> int:
    """Rows of a register tile: all of a tile, where its accumulators fit."""
    return divisor(rows.height, max(1, _accumulators(cpu) // _vectors(block, cpu)))


def _accumulators(cpu: Machine) -> int:
    """Registers for sums; the others hold operands."""
    return 16 if cpu.vector_registers >= 32 else 8


def _vectors(block: Facts, cpu: Machine) -> int:
    """Vectors of a block of columns."""
    return max(1, block.spatial[-1].extent // cpu.lanes(block.dtype))


def _group(block: Facts, rows: Rows, cpu: Machine, melted: int) -> tuple[int, int]:
    """Tiles of rows that share a panel, and blocks of columns of a panel.

    Groups are large, but such that they fall evenly on the cores.
    """
    blocks = block.spatial[-3].extent
    held = _height(block, rows, cpu) * _vectors(block, cpu)
    # Few rows are bound by reading the weights: 4 blocks at once are as fast as 8 (1 x 768 x 768).
    most = divisor(blocks, max(1, min(4, _accumulators(cpu) // held)))
    widths = [d for d in range(most, most // 2, -1) if blocks % d == 0]
    heights = [melted] if melted else divisors(rows.tiles[-1], GROUP)

    def busiest(size: tuple[int, int]) -> tuple[float, int]:
        groups = rows.tasks * (rows.tiles[-1] // size[0]) * (blocks // size[1])
        share = -(-groups // cpu.cores) * size[0] * size[1]
        # Work of the busiest core; a group of one tile has nothing that shares its panel.
        return share * (1 + 1 / (8 * size[0])) * (1 + 1 / (4 * size[1])), -size[0]

    return min(((h, w) for h in heights for w in widths), key=busiest)
