"""A product of rows with a packed weight, as it is planned."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....codegen.info.ops import Ops, OpView
from ....machine import Machine
from ....tvm.own_ops import LEVELS_OF
from ...steps.blocks import divisor
from ...steps.faults import Faults, spilled, too_large, undivided, unlike
from ...steps.loops import CHUNK_STEPS
from ...steps.tiles import BLOCK, RegisterTile, blocks_of
from .halves import machine_of, products_of, steps_of
from .layout import Rows


@dataclass(frozen=True)
class ProductPlan:
    """A product of rows with a packed weight, [outer, tile, block, row, lane].

    `group` tiles of rows share a panel of `wide` blocks of columns, piece by piece of k.
    """

    rows: Rows
    tile: RegisterTile
    lanes: int  # of a vector of sums
    blocks: int  # of columns of the packed weight
    wide: int
    depth: int
    pieces: int
    group: int
    rows_first: bool  # a group of rows goes over all panels, else a panel over all groups
    melted: bool  # a task is a group of rows, and computes what it reads itself
    parallel: bool
    # Over the weight, for each outer index: parts of its rows, one after the other; 0: one for all.
    passes: int = 0
    partial: int = 1  # sums of the only row side by side, each over every so many steps of k
    products: str = ""  # of words, their kind, of which k are steps then; else of floats

    def __str__(self) -> str:
        piece = f", {self.depth // self.pieces} of k at a time" if self.pieces > 1 else ""
        order = "all columns" if self.melted else f"{self.wide * BLOCK} columns"
        rows = f"{self.group * self.tile.rows} rows x {order}"
        passes = self.passes * self.rows.tasks
        over = f", {passes} passes over the weight" if passes else ""
        sums = f", {self.partial} partial sums" if self.partial > 1 else ""
        words = f", of words of {LEVELS_OF[self.products]}" if self.products else ""
        return f"register tile {self.tile}{sums}{piece}, {self.tasks} tasks of {rows}{over}{words}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of the one dense layer among the ops."""
        (dense,) = ops.of("dense")
        yield from self.faults_of(dense, cpu, products_of(ops, "weight", cpu))

    def faults_of(self, dense: OpView, cpu: Machine, products: str = "") -> Faults:
        """Of a dense layer that is multiplied so."""
        *lead, units = dense.outputs[0][0]
        yield from unlike("products", self.products, products)
        cpu = machine_of(cpu, products)
        held = RegisterTile(self.tile.rows, self.partial * self.tile.vectors)
        yield from spilled(held, cpu, 1 if self.tile.rows == 1 else None)
        yield from self.rows.faults(lead)
        depth = steps_of(dense.inputs[0][0][-1], products)
        yield from unlike("blocks of columns", self.blocks, paired_blocks(units))
        yield from unlike("k", self.depth, depth)
        each = BLOCK // self.lanes if self.lanes < BLOCK else 1
        yield from unlike("a tile", self.tile, RegisterTile(self.rows.height, self.wide * each))
        yield from undivided("k", depth, self.pieces)
        yield from undivided("steps of a piece", self.size, self.partial)
        if self.partial > 1:
            yield from unlike("rows", 1, self.rows.padded)
        yield from undivided("blocks of columns", self.blocks, self.wide)
        yield from undivided("tiles of a pass", self.rows.each, max(1, self.passes) * self.group)
        if self.group > 1:
            read = 4 * self.group * self.tile.rows * self.size
            yield from too_large("rows of a group", read, cpu.l2_bytes * 3 // 4)

    @property
    def groups(self) -> int:
        """Groups of tiles."""
        return math.prod(self.rows.tiles) // self.group

    @property
    def tasks(self) -> int:
        """What runs in parallel."""
        return self.groups * (1 if self.melted else self.blocks // self.wide)

    @property
    def size(self) -> int:
        """Steps of a piece of k."""
        return self.depth // self.pieces

    @property
    def chunk(self) -> int:
        """Steps of k between prefetches of the next piece or panel of the weight, where tiles share
        one; 0: none are made.
        """
        if self.melted or self.pieces == self.group == 1:
            return 0
        steps = divisor(self.size, CHUNK_STEPS)
        return steps if self.pieces > 1 or steps >= CHUNK_STEPS // 2 else 0


def paired_blocks(units: int) -> int:
    """Blocks of columns; two at a time make a tile, so many of them come in pairs."""
    blocks = blocks_of(units)
    return blocks + blocks % 2 if blocks > 8 else blocks


def block_vectors(cpu: Machine, dtype: str) -> int:
    """Vectors of a block of columns."""
    return max(1, BLOCK // cpu.lanes(dtype))
