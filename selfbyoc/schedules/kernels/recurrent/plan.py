"""The plan of a recurrent layer: register tile, and what runs in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....codegen.info.ops import Ops, OpView
from ....language.decisions import choose, is_symbolic
from ....machine import LINE, Machine
from ....ops.cells import DIRECTIONS, GATES
from ....tvm.own_ops import LEVELS_OF
from ...steps.candidates import best, divisors
from ...steps.faults import Faults, outside, spilled, undivided, unlike
from ...steps.tiles import BLOCK, RegisterTile, blocks_of
from ..words import WORDS, products_of_words

MOST_WIDE = 4  # blocks of units of a tile
MOST_ROWS = 8
REGION_CYCLES = 5000  # to launch a parallel region and to wait for its end, at each step
# To compute the cell of a vector of units, in vector operations: its exponentials above all.
CELL_CYCLES = {"lstm": 90, "peephole_lstm": 95, "gru": 70, "rnn": 30}

SERIAL, DIRECTION, UNITS = "", "directions", "units"


@dataclass(frozen=True)
class RecurrentPlan:
    """A layer of `batch` sequences in `units`, which come in blocks of a cache line.

    `products` are those of a step that follow on one another, each of some gates: a candidate may
    wait for the reset gate. `reversed` says of each direction whether it goes from the end.
    """

    kind: str
    length: int
    batch: int
    units: int
    reversed: tuple[bool, ...]
    products: tuple[tuple[int, ...], ...]
    rows: int  # of the batch, in a register tile
    wide: int  # blocks of units in one
    lanes: int  # of a vector
    parallel: str  # what the tasks are: directions, or tiles of units at each step
    levels: str = ""  # the kind of words that are multiplied; empty: floats are

    def __str__(self) -> str:
        tiles = " and ".join(map(str, self.tiles))
        tasks = {
            SERIAL: "one task",
            DIRECTION: f"{len(self.reversed)} tasks, one a direction",
            UNITS: f"{self.blocks // self.wide} tasks a step",
        }
        words = f", of words of {self.word}" if self.word else ""
        return f"register tile {tiles}, {tasks[self.parallel]}{words}"

    @property
    def word(self) -> int:
        """Levels of one; 0: floats are multiplied."""
        return LEVELS_OF[self.levels] if self.levels else 0

    @property
    def blocks(self) -> int:
        """Of units, the last one filled up."""
        return blocks_of(self.units)

    @property
    def depth(self) -> int:
        """Terms of a sum: units, or words of those of whole blocks."""
        return self.blocks * BLOCK // self.word if self.word else self.units

    @property
    def padded_batch(self) -> int:
        """Whole tiles of rows; after the last row come its copies."""
        return -(-self.batch // self.rows) * self.rows

    @property
    def tiles(self) -> list[RegisterTile]:
        """Of the products, in registers."""
        vectors = self.wide * max(1, BLOCK // self.lanes)
        return [RegisterTile(self.rows, len(gates) * vectors) for gates in self.products]

    @property
    def is_direct(self) -> bool:
        """Whether the states are the result as they are written."""
        whole = self.units == self.blocks * BLOCK and self.batch == self.padded_batch
        return whole and self.reversed == (False,)

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan for a layer."""
        op = _layer(ops)
        yield from unlike("levels", self.levels, _levels(ops, blocks_of(self.units), cpu))
        (length, _, batch, units), dtype = op.outputs[0]
        found = self.kind, self.length, self.batch, self.units
        yield from unlike("sizes", found, (op.kind, length, batch, units))
        yield from unlike("directions", self.reversed, DIRECTIONS[op.attrs["direction"]])
        yield from unlike("products", self.products, _products(op))
        yield from unlike("a vector", self.lanes, cpu.lanes(dtype))
        yield from outside("rows", self.rows, 1, min(MOST_ROWS, batch))
        yield from undivided("blocks of units", self.blocks, self.wide)
        for tile in self.tiles if (self.rows, self.wide) != (1, 1) else ():
            yield from spilled(tile, cpu, 1)


def plan(ops: Ops, machine: Machine) -> RecurrentPlan:
    """The plan of the composite's layer."""
    op = _layer(ops)
    levels = _levels(ops, blocks_of(op.outputs[0][0][-1]), machine)
    found = list(_plans(op, machine, levels))
    usual = min(found, key=lambda made: _cycles(made, machine))
    sizes = [(p.rows, p.wide, p.parallel) for p in found]
    chosen = (usual.rows, usual.wide, usual.parallel)
    made = choose(f"{op.name}.tile", best(sizes, chosen), chosen, sizes)
    return next(p for p, size in zip(found, sizes, strict=True) if size == made)


def _layer(ops: Ops) -> OpView:
    return next(view for view in ops if view.kind in GATES)


def _levels(ops: Ops, blocks: int, cpu: Machine) -> str:
    """The kind of words: of a weight that was packed, perhaps for another CPU, as it was."""
    levels = next(iter(ops.of("dequantize")), None)
    if levels is None:
        return ""
    packed = ops.packing(levels, 0).shape
    if packed is None:
        return cpu.products
    word = next(w for w in WORDS if blocks * BLOCK // w == packed[2] - 1)  # the sums lie behind
    return cpu.products if LEVELS_OF[cpu.products] == word else products_of_words(word)


def _plans(op: OpView, cpu: Machine, levels: str) -> Iterator[RecurrentPlan]:
    """Every tile that fits, with every way to share the work among cores; at least one."""
    (length, directions, batch, units), _ = op.outputs[0]
    back = DIRECTIONS[op.attrs["direction"]]
    products = _products(op)
    ways = [SERIAL, UNITS] + [DIRECTION] * (directions > 1)
    # Of an open batch tiles of one row: tiles for all its sizes are a minute of compiling.
    rows = [1] if is_symbolic(batch) else range(1, min(MOST_ROWS, batch) + 1)
    lanes = cpu.lanes(op.outputs[0][1])
    for wide in divisors(blocks_of(units), MOST_WIDE):
        for height in rows:
            for way in ways if cpu.cores > 1 else [SERIAL]:
                made = RecurrentPlan(
                    op.kind, length, batch, units, back, products, height, wide, lanes, way, levels
                )
                if height == wide == 1 or all(tile.fits(cpu, 1) for tile in made.tiles):
                    yield made


def _products(op: OpView) -> tuple[tuple[int, ...], ...]:
    """The gates of each product of a step."""
    late = op.kind != "gru" or op.attrs["linear_before_reset"]
    gates = tuple(range(GATES[op.kind]))
    return (gates,) if late else (gates[:2], gates[2:])


def _cycles(plan: RecurrentPlan, cpu: Machine) -> float:
    """Of a step of all directions: products, cells, waiting for weights and for one another."""
    rows, across = plan.padded_batch // plan.rows, plan.blocks // plan.wide
    tasks = {SERIAL: 1, DIRECTION: len(plan.reversed), UNITS: across}[plan.parallel]
    busiest = -(-tasks // cpu.cores) / tasks * len(plan.reversed)
    steps = sum(tile.cycles(cpu) for tile in plan.tiles) * plan.depth * rows * across
    vectors = plan.blocks * BLOCK / plan.lanes * plan.padded_batch
    cells = vectors * CELL_CYCLES[plan.kind] / cpu.multiply_adds
    size = sum(map(len, plan.products)) * plan.blocks * LINE * plan.depth
    held = size * (busiest if plan.parallel else len(plan.reversed))
    weights = size * rows / (cpu.l2_bandwidth if held <= cpu.l2_bytes else cpu.l3_bandwidth)
    waits = REGION_CYCLES * len(plan.products) * len(plan.reversed)
    return (max(steps, weights) + cells) * busiest + (waits if plan.parallel == UNITS else 0)
