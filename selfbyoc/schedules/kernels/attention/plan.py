"""The plan of an attention: how many queries a block has, and the register tiles of both products.

A task is a block of queries of one batch or head. Its scores lie as [key, query]: the first product
has rows of keys and vectors of queries, the second one rows of queries and vectors of columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ....language.decisions import choose
from ....machine import Machine
from ...steps.blocks import divisor
from ...steps.tiles import BLOCK, RegisterTile, register_tiles

LEAST_PRODUCTS = 1 << 17  # multiplications below which a parallel region costs more than it saves
LEAST_FEW = 1 << 16  # the same where a query is a task: it reads more than it multiplies
FEW = 4  # queries that fill no vector: a row of keys times a query each is as fast
POWER = 14  # vector instructions of a power, its part of the sum and of the largest score
TILE = 12  # cycles to begin and to store a register tile


@dataclass(frozen=True)
class Shape:
    """Extents of one attention."""

    batch: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    columns: int
    interleaved: bool  # [batch, sequence, heads, depth], as dense layers leave it

    @property
    def products(self) -> int:
        """Multiplications of both products."""
        return math.prod(self.batch) * self.queries * self.keys * (self.depth + self.columns)


@dataclass(frozen=True)
class FewPlan:
    """Few queries: lanes are columns, and a query is a task."""

    shape: Shape
    vector: int  # floats of a machine vector
    depth_lanes: int  # partial sums of a score
    key_lanes: int  # partial results of a row of scores
    parallel: bool

    def __str__(self) -> str:
        return f"a query a task, {self.depth_lanes} partial sums a score"


@dataclass(frozen=True)
class BlockPlan:
    """Blocks of queries: a query is a lane."""

    shape: Shape
    vector: int  # floats of a machine vector
    lanes: int  # queries of a block
    scores: RegisterTile  # keys x vectors of queries
    weighted: RegisterTile  # queries x vectors of columns
    panels_outside: bool  # columns outside of the tiles of queries
    parallel: bool

    def __str__(self) -> str:
        return (
            f"{self.lanes} queries a task, {self.tasks} tasks, register tiles "
            f"{self.scores.rows} keys x {self.scores.vectors} vectors and "
            f"{self.weighted.rows} queries x {self.weighted.vectors} vectors"
        )

    @property
    def blocks(self) -> int:
        """Blocks of queries of one batch."""
        return -(-self.shape.queries // self.lanes)

    @property
    def tasks(self) -> int:
        """Blocks of queries of all batches."""
        return math.prod(self.shape.batch) * self.blocks

    @property
    def key_rows(self) -> int:
        """Keys with the copies of the last one, so that they come in whole tiles."""
        return -(-self.shape.keys // self.scores.rows) * self.scores.rows

    @property
    def width(self) -> int:
        """Columns of the values in whole vectors."""
        return -(-self.shape.columns // self.vector) * self.vector


AttentionPlan = FewPlan | BlockPlan


def plan(ops: Any, machine: Machine) -> AttentionPlan:
    """The plan of the matched ops for a machine."""
    shape, vector = shape_of(ops), machine.lanes("float32")
    if _few(shape.queries):
        parts = divisor(shape.depth, BLOCK), divisor(shape.keys, BLOCK)
        parallel = math.prod(shape.batch) * shape.queries * shape.keys * shape.depth >= LEAST_FEW
        return FewPlan(shape, vector, *parts, parallel)
    found = sorted(_blocks(shape, machine), key=lambda p: _cycles(p, machine))
    sizes = [p.lanes for p in found][:4]
    lanes = choose("queries_of_a_block", sizes, sizes[0])
    outside = choose("panels_outside", (True, False), True)
    taken = next(p for p in found if p.lanes == lanes)
    return BlockPlan(shape, vector, lanes, taken.scores, taken.weighted, outside, taken.parallel)


def shape_of(ops: Any) -> Shape:
    """The extents, from the two products."""
    first, second = ops.of("batch_matmul")
    *batch, queries, keys = first.outputs[0][0]
    depth = first.inputs[0][0][-2 if first.attrs["transpose_a"] else -1]
    columns = second.inputs[1][0][-2 if second.attrs["transpose_b"] else -1]
    return Shape(tuple(batch), queries, keys, depth, columns, bool(ops.of("transpose")))


def _few(queries: int) -> bool:
    """Whether most lanes of queries would be copies: 16 of them cost as much as 4 rows of keys each
    times its query.
    """
    return choose("few_queries", (True, False) if queries <= BLOCK else (False,), queries <= FEW)


def _blocks(shape: Shape, cpu: Machine) -> list[BlockPlan]:
    """A plan for each size of a block."""
    vector = cpu.lanes("float32")
    columns = -(-shape.columns // vector)
    parallel = shape.products >= LEAST_PRODUCTS
    found = []
    for count in _vectors_of_a_block(shape.queries, vector):
        lanes = count * vector
        scores = _tile(cpu, shape.keys, count, shape.depth)
        weighted = _tile(cpu, lanes, columns, shape.keys, whole=True)
        found.append(BlockPlan(shape, vector, lanes, scores, weighted, True, parallel))
    return found


def _vectors_of_a_block(queries: int, vector: int) -> list[int]:
    """Sizes of a block, in vectors: up to four cache lines of queries."""
    most = min(-(-queries // vector), 4 * BLOCK // vector)
    return list(range(1, most + 1))


def _tile(cpu: Machine, rows: int, vectors: int, depth: int, whole: bool = False) -> RegisterTile:
    """The register tile of the least cycles; vectors come whole, rows with copies of the last one
    unless they must be `whole` too.
    """
    extents = range(1, min(rows, cpu.vector_registers) + 1)
    counts = [v for v in range(1, vectors + 1) if vectors % v == 0]
    tiles = register_tiles(cpu, [r for r in extents if not whole or rows % r == 0], counts)
    return min(tiles, key=lambda tile: _of_product(cpu, tile, rows, vectors, depth))


def _of_product(cpu: Machine, tile: RegisterTile, rows: int, vectors: int, depth: int) -> float:
    """Cycles of a product in tiles."""
    tiles = -(-rows // tile.rows) * (vectors // tile.vectors)
    return tiles * (tile.cycles(cpu) * depth + TILE)


def _cycles(plan: BlockPlan, cpu: Machine) -> float:
    """Of the busiest core, by the model: both products and the powers of its tasks."""
    shape, vectors = plan.shape, plan.lanes // plan.vector
    task = _of_product(cpu, plan.scores, shape.keys, vectors, shape.depth)
    columns = plan.width // plan.vector
    task += _of_product(cpu, plan.weighted, plan.lanes, columns, shape.keys)
    task += vectors * shape.keys * POWER / cpu.multiply_adds
    return task * -(-plan.tasks // (cpu.cores if plan.parallel else 1))
