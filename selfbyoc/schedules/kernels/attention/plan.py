"""The plan of an attention: how many queries a block has, and the register tiles of both products.

A task is a block of queries of one batch or head. Its scores lie as [key, query]: the first product
has rows of keys and vectors of queries, the second one rows of queries and vectors of columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ....codegen.info.ops import Ops
from ....language.decisions import choose, for_every_size, is_symbolic
from ....machine import Machine
from ....tvm.own_ops import PAIRS
from ...steps.blocks import divisor
from ...steps.candidates import best, divisors, next_to
from ...steps.parallel import LEAST_FEW_PRODUCTS, LEAST_PRODUCTS, is_worth_it
from ...steps.tiles import BLOCK, RegisterTile
from ..rows.rowwise import partial_sums
from .forms import BlockPlan, FewPlan, Shape, machine_for, words_for
from .split_plan import SplitPlan, is_split, split_plan

AttentionPlan = FewPlan | BlockPlan | SplitPlan

FEW_QUERIES = 4  # queries that fill no vector: a row of keys times a query each is as fast
# Vector instructions of a power, its part of the sum and of the largest score.
POWER_INSTRUCTIONS = 14
LEVEL_INSTRUCTIONS = 40  # of two levels of a score and one of a power, with their divisions
# Of a sum, unrolled: the branch of a short loop is foreseen, that of 64 turns is not.
UNROLLED_STEPS = 8
TILE_CYCLES = 12  # cycles to begin and to store a register tile
# Cycles that a row of keys adds to a step of its tile, as each has a line of its own. Of the peak,
# 4 x 2 vectors reach 91%, 6 x 2 94%, 4 x 3 97%, 3 x 4 and 2 x 5 99% (Cascade Lake, AVX2, Nov 2026).
ROW_CYCLES = 0.1
MANY_KEYS = 1 << 16  # of which a tile leaves no part over
LATENCY_SLACK = 1.05  # of the latency: sums that are just enough wait a little


def plan_of_levels(ops: Ops, machine: Machine) -> BlockPlan:
    """Of words of two levels, which are always made first; powers are summed as softmax alone sums
    a row of them, so that the levels are the same.
    """
    shape = Shape.of(ops)
    parts = partial_sums(shape.keys, machine)
    cpu = machine_for(machine, PAIRS)
    return _taken(_blocks(shape, cpu, PAIRS, parts), cpu)


def plan(ops: Ops, machine: Machine) -> AttentionPlan:
    """The plan of the matched ops for a machine."""
    shape, vector = Shape.of(ops), machine.lanes("float32")
    if is_split(shape):
        return split_plan(shape, machine)
    if _few(shape.queries):
        parts = divisor(shape.depth, BLOCK), divisor(shape.keys, BLOCK)
        work = math.prod(shape.batch) * shape.queries * shape.keys * shape.depth
        parallel = is_worth_it(work, LEAST_FEW_PRODUCTS)
        return FewPlan(shape, vector, *parts, parallel)
    words = words_for(ops, shape, machine)
    machine = machine_for(machine, words)
    taken = _taken(_blocks(shape, machine, words), machine)
    ways = (True,) if words else (False,) if shape.key_rows else (True, False)
    packed = choose(
        "packed", ways, taken.packed,
        time=lambda packed: _cycles(replace(taken, packed=packed), machine),
    )  # fmt: skip
    return replace(taken, packed=packed)


def _taken(found: list[BlockPlan], machine: Machine) -> BlockPlan:
    """Of the plans that there are, best first."""
    by_lanes = {p.lanes: p for p in found}
    sizes = list(by_lanes)
    lanes = choose(
        "queries_of_a_block", sizes[:4], sizes[0], sizes, lambda n: _cycles(by_lanes[n], machine)
    )
    outside = choose("panels_outside", (True, False), True)
    return replace(_decided(by_lanes[lanes], machine), panels_outside=outside)


def _decided(plan: BlockPlan, cpu: Machine) -> BlockPlan:
    """The same with what depends on the number of keys as it is chosen."""

    def sizes(keys: int) -> list[tuple[int, int]]:
        product = _scores_of(replace(plan, shape=replace(plan.shape, keys=keys)))
        tiles = product.tiles(cpu, range(1, min(keys, cpu.vector_registers - 1) + 1))
        return [(tile.rows, tile.vectors) for tile in tiles]

    found, usual = sizes(plan.shape.keys), plan.key_steps
    size = choose("scores_tile", best(found, found[0]), found[0], sizes(MANY_KEYS)[:1])
    steps = next_to(divisors(plan.keys, UNROLLED_STEPS), usual)
    key_steps = choose("unrolled_keys", steps, usual, (1,))
    return replace(plan, scores=RegisterTile(*size), key_steps=key_steps)


def _few(queries: int) -> bool:
    """Whether most lanes of queries would be copies: 16 of them cost as much as 4 rows of keys each
    times its query.
    """
    return choose(
        "few_queries", (True, False) if queries <= BLOCK else (False,), queries <= FEW_QUERIES
    )


def _are_two_sizes(shape: Shape) -> bool:
    """Whether the numbers of queries and of keys are open, each by itself."""
    are_open = is_symbolic(shape.queries) and is_symbolic(shape.keys)
    return are_open and shape.queries != shape.keys


def _blocks(shape: Shape, cpu: Machine, words: str, parts: int = 1) -> list[BlockPlan]:
    """A plan for each size of a block, of up to three cache lines of queries; the best first. A
    block is one vector only where pairs would be few a core: its tiles mostly load; or where both
    queries and keys are open, and any number of queries has one size of a block.
    """
    vector = cpu.lanes("float32")
    count = -(-shape.queries // vector)
    pairs = math.prod(shape.batch) * -(-count // 2)
    least = min(count, 2) if pairs >= 2 * cpu.cores and not _are_two_sizes(shape) else 1
    most = 3 * BLOCK // vector
    if not for_every_size():
        most = min(count, most)
    found = [_block(shape, cpu, n * vector, words, parts) for n in range(least, most + 1)]
    return sorted(found, key=lambda plan: _cycles(plan, cpu))


@dataclass(frozen=True)
class _Product:
    """Sums over `depth` of `rows` and `vectors` in registers."""

    rows: int
    vectors: int
    depth: int
    line: float = 0.0  # cycles a row of a tile adds to a step

    def cycles(self, tile: RegisterTile, cpu: Machine) -> float:
        """In these tiles, the last rows in a whole one too."""
        tiles = -(-self.rows // tile.rows) * (self.vectors // tile.vectors)
        step = max(tile.cycles(cpu), LATENCY_SLACK * cpu.latency) + self.line * tile.rows
        return tiles * (step * self.depth + TILE_CYCLES)

    def tiles(self, cpu: Machine, rows: Iterable[int]) -> list[RegisterTile]:
        """The tiles of some of these rows, and of vectors that come out even; the fastest first."""
        vectors = [v for v in range(1, self.vectors + 1) if self.vectors % v == 0]
        tiles = [RegisterTile(r, v) for r in rows for v in vectors]
        # The schedule holds a step's rows or its vectors, of which there are fewer.
        fitting = [tile for tile in tiles if tile.fits(cpu, min(tile.rows, tile.vectors))]
        return sorted(fitting, key=lambda tile: (self.cycles(tile, cpu), tile.vectors))


def _scores_of(plan: BlockPlan) -> _Product:
    return _Product(plan.shape.keys, plan.lanes // plan.vector, plan.depth, ROW_CYCLES)


def _result_of(plan: BlockPlan) -> _Product:
    return _Product(plan.lanes, plan.width // plan.vector, plan.keys)


def _block(shape: Shape, cpu: Machine, lanes: int, words: str, parts: int) -> BlockPlan:
    """The plan for one size of a block."""
    vector, one = cpu.lanes("float32"), RegisterTile(1, 1)
    rows = range(1, cpu.vector_registers)
    parallel = is_worth_it(shape.products, LEAST_PRODUCTS)
    sizes = shape, vector, lanes, one, one, 1, 1
    found = BlockPlan(*sizes, bool(words), True, parallel, words, parts)
    found = replace(
        found,
        scores=_scores_of(found).tiles(cpu, [r for r in rows if r <= shape.keys])[0],
        weighted=_result_of(found).tiles(cpu, [r for r in rows if lanes % r == 0])[0],
        depth_steps=divisor(found.depth, UNROLLED_STEPS),
        key_steps=divisor(found.keys, UNROLLED_STEPS),
    )
    packed = replace(found, packed=bool(words) or not shape.key_rows)
    return min(found, packed, key=lambda plan: _cycles(plan, cpu))


def _cycles(plan: BlockPlan, cpu: Machine) -> float:
    """Of the busiest core, by the model: both products and the powers of its tasks."""
    task = _scores_of(plan).cycles(plan.scores, cpu)
    task += _result_of(plan).cycles(plan.weighted, cpu)
    power = POWER_INSTRUCTIONS + (LEVEL_INSTRUCTIONS if plan.words == PAIRS else 0)
    task += plan.lanes // plan.vector * plan.shape.keys * power / cpu.multiply_adds
    task += _from_l2(plan, cpu)
    cores = cpu.cores if plan.parallel else 1
    return task * -(-plan.tasks // cores) + _apart(plan, cpu) / cores


def _apart(plan: BlockPlan, cpu: Machine) -> float:
    """Cycles for keys that lie apart, and values if interleaved: each block reads them as from L3,
    unless L1 holds the keys, or they are read and written once.

    Rows at a distance share few lines of L2, and each has a page. A line of 12 heads of 384x64 or
    384x32 takes a block 6 cycles, of 512x64 11, of 16 heads 26; copied it takes 10 (Zen 3, Nov
    2026).
    """
    shape = plan.shape
    apart = "v" in shape.interleaved or plan.words
    columns = shape.depth + (shape.columns if apart else 0)
    once = 4 * math.prod(shape.batch) * shape.keys * columns / cpu.l3_bandwidth
    if plan.packed:
        return 2 * once
    is_held = shape.key_rows or 4 * shape.keys * shape.depth < cpu.l1_bytes
    return 0.0 if is_held else plan.blocks * once


def _from_l2(plan: BlockPlan, cpu: Machine) -> float:
    """Cycles for powers that L1 does not hold: written and read as scores and powers, and read for
    each panel of columns (12x512x64: blocks of 40 68% of the peak, of 32 and 16 73%; AVX2).
    """
    held = 4 * plan.shape.keys * plan.lanes
    panels = plan.width // plan.vector // plan.weighted.vectors
    return held * (3 + panels) / cpu.l2_bandwidth if held > cpu.l1_bytes else 0.0
