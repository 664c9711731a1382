"""Few queries and a growing number of keys, as a decoder's cache has: keys come in blocks.

A task is a block of keys of one head, or of all heads where these lie together and lanes are of the
depth. What it makes of them, the sum of their powers and of the weighted values, is added up at the
end, each less by the largest score of all (flash-decoding). So all loops but that over the blocks
have one length whatever the number of keys is, and a single head keeps all cores busy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ....codegen.info.ops import Ops
from ....language.decisions import choose, is_open
from ....machine import Machine
from ...steps.blocks import divisor
from ...steps.candidates import divisors
from ...steps.faults import Faults, outside, spilled, undivided, unlike
from ...steps.parallel import LEAST_FEW_PRODUCTS, is_worth_it
from ...steps.tiles import BLOCK, RegisterTile, register_tiles
from .forms import Shape

# A query is a lane from so many on: below, lanes are of the depth, and each score is a sum of them.
LEAST_LANES = 3
LEAST_PARTIAL = 4
# Keys of a block: of 64 and 64 columns keys and values are 32 KB, read once.
KEYS = (64, 128, 32)
UNROLLED_STEPS = 8


@dataclass(frozen=True)
class SplitPlan:
    """Blocks of keys: a query is a lane, or (lanes 1) lanes are of the depth and of keys."""

    shape: Shape
    vector: int  # floats of a machine vector
    block: int  # keys of a block
    lanes: int  # queries with copies of the last one; of narrower vectors where these suffice
    depth_lanes: int  # partial sums of a score; 1: a query is a lane
    scores: RegisterTile  # keys x vectors of queries
    weighted: RegisterTile  # queries x vectors of columns
    depth_steps: int  # of a score's sum, unrolled
    key_steps: int  # of a result's sum, unrolled
    parallel: bool

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan."""
        shape, vector = self.shape, cpu.lanes("float32")
        across, vectors = self.lanes // self.narrow, shape.columns // self.columns
        yield from unlike("extents", shape, Shape.of(ops))
        yield from unlike("a vector", self.vector, vector)
        yield from outside("queries", shape.queries, 1, BLOCK)
        yield from outside("lanes", self.lanes, shape.queries, BLOCK)
        yield from undivided("a vector", self.vector, self.narrow)
        yield from undivided("lanes", self.lanes, self.narrow)
        if self.depth_lanes > 1:
            yield from unlike("lanes", self.lanes, shape.queries)
        yield from undivided("keys of a block", self.block, self.scores.rows)
        yield from undivided("vectors of queries", across, self.scores.vectors)
        yield from undivided("vectors of columns", vectors, self.weighted.vectors)
        yield from undivided("keys of a block", self.block, self.key_steps)
        yield from undivided("keys of a block", self.block, BLOCK)
        yield from undivided("depth", shape.depth, self.depth_lanes)
        yield from undivided("steps of depth", shape.depth // self.depth_lanes, self.depth_steps)
        yield from outside("queries of tiles", self.rows, shape.queries, self.lanes)
        for tile in (self.scores, self.weighted):
            yield from spilled(tile, cpu, min(tile.rows, tile.vectors))

    def __str__(self) -> str:
        blocks = f"{self.block} keys a task, {self.tasks} tasks"
        if self.depth_lanes > 1:
            return f"{blocks}, {self.depth_lanes} partial sums a score"
        return (
            f"{blocks}, register tiles {self.scores} of {self.narrow} queries and {self.weighted} "
            f"of columns"
        )

    @property
    def blocks(self) -> int:
        """Blocks of keys of one batch."""
        return -(-self.shape.keys // self.block)

    @property
    def tasks(self) -> int:
        """Blocks of keys of all batches."""
        return math.prod(self.shape.batch) * self.blocks

    @property
    def narrow(self) -> int:
        """Queries of a vector."""
        return min(self.vector, self.lanes)

    @property
    def columns(self) -> int:
        """Columns of a vector: all, where whole vectors leave some over."""
        columns = self.shape.columns
        return columns if columns % self.vector else self.vector

    @property
    def rows(self) -> int:
        """Queries in whole tiles, copies of the last one among them."""
        return -(-self.shape.queries // self.weighted.rows) * self.weighted.rows


def is_split(shape: Shape) -> bool:
    """Whether few queries, of a number that is known, meet keys of one that is not."""
    of_one_size = shape.queries == shape.keys  # as far as numbers say
    is_known = shape.queries == 1 or not is_open(shape.queries)
    return shape.queries <= BLOCK and is_known and is_open(shape.keys) and not of_one_size


def split_plan(shape: Shape, cpu: Machine) -> SplitPlan:
    """The plan of few queries for a machine."""
    block = choose("keys_of_a_block", KEYS, KEYS[0], KEYS)
    partial = divisor(shape.depth, BLOCK)
    by_depth = shape.queries < LEAST_LANES and partial >= LEAST_PARTIAL
    lanes = min(max(2 ** (shape.queries - 1).bit_length(), LEAST_PARTIAL), BLOCK)
    work = math.prod(shape.batch) * shape.queries * block * shape.depth
    steps = shape.depth // partial if by_depth else shape.depth
    one = RegisterTile(1, 1)
    found = SplitPlan(
        shape, cpu.lanes("float32"), block, shape.queries if by_depth else lanes,
        partial if by_depth else 1, one, one, divisor(steps, UNROLLED_STEPS),
        divisor(block, UNROLLED_STEPS), is_worth_it(work, LEAST_FEW_PRODUCTS),
    )  # fmt: skip
    found = replace(found, weighted=_weighted(found, cpu))
    return found if by_depth else replace(found, scores=_scores(found, cpu))


def _scores(plan: SplitPlan, cpu: Machine) -> RegisterTile:
    rows, vectors = divisors(plan.block, cpu.vector_registers), plan.lanes // plan.narrow
    return register_tiles(cpu, rows, divisors(vectors, vectors))[0]


def _weighted(plan: SplitPlan, cpu: Machine) -> RegisterTile:
    """The tile that takes all rows and columns in the fewest cycles, with few rows too many."""
    queries, vectors = plan.shape.queries, plan.shape.columns // plan.columns
    most = 1 if plan.depth_lanes > 1 else queries
    tiles = [RegisterTile(r, v) for r in range(1, most + 1) for v in divisors(vectors, vectors)]
    fitting = [tile for tile in tiles if tile.fits(cpu, min(tile.rows, tile.vectors))]
    covered = [t for t in fitting if -(-queries // t.rows) * t.rows <= plan.lanes]

    def cycles(tile: RegisterTile) -> tuple[float, int]:
        count = -(-queries // tile.rows) * (vectors // tile.vectors)
        return count * max(tile.cycles(cpu), tile.sums / cpu.multiply_adds), count

    return min(covered, key=cycles, default=RegisterTile(1, 1))
