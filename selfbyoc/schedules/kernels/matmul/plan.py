"""The plan of a product of matrices that are both computed: register tile, panels, tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....codegen.info.op_record import describe
from ....codegen.info.ops import Ops, OpView
from ....language.decisions import choose, for_every_size, is_symbolic
from ....machine import Machine
from ....tvm.types import Shape
from ...steps.candidates import best, divisors
from ...steps.faults import Faults, outside, spilled, undivided, unlike
from ...steps.tiles import RegisterTile

MOST_VECTORS = 4  # of a row of a tile
MOST_ROWS = 16
MOST_OF_OTHERS = 1 << 16  # rows or columns of a tile, where any fits
# Cycles to lay an element of the right side out, one by one; to load and add it is a fraction.
PACK_CYCLES = 1.5


@dataclass(frozen=True)
class MatmulPlan:
    """A product [batch, rows, columns] over `depth`."""

    batch: tuple[int, ...]
    rows: int
    columns: int
    depth: int
    height: int  # rows of a register tile
    width: int  # columns of one: a panel
    vector: int  # lanes of a register
    packed: bool  # whether panels are laid out before they are read
    groups: int  # tasks of one product; 1: a task lays its panels out itself

    def __str__(self) -> str:
        side = ", the right side in panels" if self.packed else ""
        rows = self.tiles // self.groups * self.height
        return f"register tile {self.tile}{side}, {self.tasks} tasks of {min(rows, self.rows)} rows"

    @property
    def tile(self) -> RegisterTile:
        """In registers."""
        return RegisterTile(self.height, -(-self.width // self.vector))

    @property
    def tiles(self) -> int:
        """Of rows; after the last row its copies follow."""
        return -(-self.rows // self.height)

    @property
    def panels(self) -> int:
        """Of columns; after the last column zeros follow."""
        return -(-self.columns // self.width)

    @property
    def tasks(self) -> int:
        """What runs in parallel."""
        return math.prod(self.batch) * self.groups

    @property
    def steps(self) -> int:
        """Vectors of products, in all."""
        sums = self.tiles * self.panels * self.tile.sums
        return math.prod(self.batch) * sums * self.depth

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan of a product."""
        (matmul,) = ops.of("batch_matmul")
        *batch, rows, columns = matmul.outputs[0][0]
        own = self.batch, self.rows, self.columns, self.depth
        yield from unlike("extents", own, (tuple(batch), rows, columns, depth_of(matmul)))
        yield from unlike("a vector", self.vector, cpu.lanes("float32"))
        yield from spilled(self.tile, cpu)
        most = MOST_ROWS if for_every_size() else min(MOST_ROWS, self.rows)
        yield from outside("rows of a tile", self.height, 1, most)
        yield from undivided("tiles", self.tiles, self.groups)
        yield from undivided("columns of a panel", self.width, self.vector)
        if not self.packed:  # nothing tells what is outside
            yield from undivided("columns in place", columns, self.width)


def plan(ops: Ops, machine: Machine) -> MatmulPlan:
    """The plan of the composite's batch_matmul."""
    (matmul,) = ops.of("batch_matmul")
    shape, turned = matmul.outputs[0][0], matmul.attrs["transpose_b"]
    return chosen(matmul.name, usual(shape, depth_of(matmul), turned, machine))


def chosen(name: str, found: Sequence[MatmulPlan]) -> MatmulPlan:
    """The plan of a product, of some of which the first is the default."""
    sizes = [(p.height, p.width, p.packed, p.groups) for p in found]
    lasting = [size for size in sizes if size[-1] == 1]  # one group fits every number of rows
    made = choose(f"{name}.tile", best(sizes, sizes[0]), sizes[0], lasting)
    return next(p for p, size in zip(found, sizes, strict=True) if size == made)


def alone(matmul: OpView, depth: int, turned: bool) -> Ops:
    """A product of words, of so many of them, as a plan of one of floats sees it; the right side is
    laid out by rows of them.
    """
    *batch, rows, columns = matmul.outputs[0][0]
    x = (*batch, depth, rows) if turned else (*batch, rows, depth)
    attrs = {"transpose_a": turned, "transpose_b": True}
    inputs = [(x, "int32"), ((*batch, columns, depth), "int32")]
    out = (matmul.outputs[0][0], "int32")
    return Ops([describe(matmul.name, "batch_matmul", attrs, inputs, [out])])


def depth_of(matmul: OpView) -> int:
    """Products of a sum."""
    return int(matmul.inputs[0][0][-2 if matmul.attrs["transpose_a"] else -1])


def usual(shape: Shape, depth: int, turned: bool, cpu: Machine) -> list[MatmulPlan]:
    """Plans of several register tiles, that which takes the least time first. `turned`: the right
    side is [columns, depth].
    """
    *batch, rows, columns = shape
    vector = cpu.lanes("float32")
    found = []
    for width, padded in _widths(columns, vector):
        heights = range(1, min(MOST_ROWS, _most_of(rows)) + 1)
        tiles = [RegisterTile(h, -(-width // vector)) for h in heights]
        for tile in (t for t in tiles if t.fits(cpu)):
            one = MatmulPlan(
                tuple(batch), rows, columns, depth, tile.rows, width, vector, turned or padded, 1
            )
            found += _in_groups(one, cpu)
    return sorted(found, key=lambda p: (round(_time(p, cpu)), p.groups, -p.height))


def _widths(columns: int, vector: int) -> list[tuple[int, bool]]:
    """Columns of a panel, whole vectors, and whether the last one has more than there are: LLVM
    keeps sums of other widths in memory (8 x 785x19 by 19x19: 294 us with rows of 19, 22 of 32).
    """
    vectors = range(1, min(MOST_VECTORS, -(-_most_of(columns) // vector)) + 1)
    is_open = is_symbolic(columns)
    return [(n * vector, is_open or columns % (n * vector) > 0) for n in vectors]


def _most_of(count: int) -> int:
    """Rows or columns that a tile may have of so many: any, where a tile of other sizes has to fit
    this one; of a symbolic number by itself two tiles, as a loop of one turn is none, and another
    kernel.
    """
    if not is_symbolic(count):
        return count
    return MOST_OF_OTHERS if for_every_size() else max(count // 2, 1)


def _in_groups(one: MatmulPlan, cpu: Machine) -> list[MatmulPlan]:
    """With whole products as tasks, and with parts of their rows, evenly spread."""
    parts = [n for n in divisors(one.tiles, one.tiles) if n == 1 or one.tasks * n <= 4 * cpu.cores]
    return [replace(one, groups=n) for n in parts]


def _time(p: MatmulPlan, cpu: Machine) -> float:
    """Cycles of the core with most tasks."""
    tile = p.tile
    # Of a symbolic number half a tile is left over.
    tiles = p.rows / p.height + 0.5 if is_symbolic(p.rows) else p.tiles
    panels = p.columns / p.width + 0.5 if is_symbolic(p.columns) else p.panels
    products = tiles * panels * p.depth * tile.cycles(cpu) * (1 + _loads(tile))
    laid_out = PACK_CYCLES * panels * p.width * p.depth if p.packed else 0.0
    spread = cpu.unevenness(p.tasks) / cpu.cores
    # Panels of several tasks are laid out before these, in parallel.
    apart = 1 / cpu.cores if p.groups > 1 else spread
    return math.prod(p.batch) * (products * spread + laid_out * apart)


def _loads(tile: RegisterTile) -> float:
    return (tile.rows + tile.vectors) / tile.sums
