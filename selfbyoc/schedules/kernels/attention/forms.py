"""Attention as it is planned: few queries, or blocks of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ....codegen.info.ops import Ops
from ....language.decisions import for_every_size
from ....machine import Machine
from ...steps.faults import Faults, outside, spilled, undivided, unlike
from ...steps.tiles import BLOCK, RegisterTile
from ..bfloat16 import HELD, LEAST_PRODUCTS, WORD, machine_of, steps_of


@dataclass(frozen=True)
class Shape:
    """Extents of one attention."""

    batch: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    columns: int
    interleaved: bool  # [batch, sequence, heads, depth], as dense layers leave it
    key_rows: bool  # a head's keys lie one after the other, not interleaved or transposed

    @classmethod
    def of(cls, ops: Ops) -> Shape:
        """From the two products."""
        first, second = ops.of("batch_matmul")
        *batch, queries, keys = first.outputs[0][0]
        depth = first.inputs[0][0][-2 if first.attrs["transpose_a"] else -1]
        columns = second.inputs[1][0][-2 if second.attrs["transpose_b"] else -1]
        interleaved = bool(ops.of("transpose"))
        one_head = first.inputs[1][0][-3] == 1  # of keys for all heads of queries, say
        key_rows = one_head if interleaved else first.attrs["transpose_b"]
        return cls(tuple(batch), queries, keys, depth, columns, interleaved, key_rows)

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

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan."""
        yield from unlike("extents", self.shape, Shape.of(ops))
        yield from unlike("a vector", self.vector, cpu.lanes("float32"))
        yield from undivided("depth", self.shape.depth, self.depth_lanes)
        yield from undivided("keys", self.shape.keys, self.key_lanes)

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
    depth_steps: int  # of a score's sum, unrolled
    key_steps: int  # of a result's sum, unrolled
    packed: bool  # keys, and interleaved values, are copied first: a head's rows in turn
    panels_outside: bool  # columns outside of the tiles of queries
    parallel: bool
    words: bool = False  # of two bfloat16, along the depth and along the keys

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan."""
        shape, vectors = self.shape, self.lanes // self.vector
        yield from unlike("of words", self.words, is_of_words(ops, shape, cpu))
        yield from unlike("extents", shape, Shape.of(ops))
        yield from unlike("a vector", self.vector, cpu.lanes("float32"))
        yield from outside("queries of a block", self.lanes, 1, max(3 * BLOCK, self.vector))
        yield from undivided("queries of a block", self.lanes, self.vector)
        if not for_every_size():  # of a copy of the last key more are computed than there are
            yield from outside("keys of a tile", self.scores.rows, 1, shape.keys)
        yield from undivided("vectors of queries", vectors, self.scores.vectors)
        yield from undivided("queries of a block", self.lanes, self.weighted.rows)
        yield from undivided("vectors of columns", self.width // self.vector, self.weighted.vectors)
        yield from undivided("depth", self.depth, self.depth_steps)
        yield from undivided("keys", self.keys, self.key_steps)
        is_packed = self.words or (self.packed and not shape.key_rows)
        yield from unlike("packed", self.packed, is_packed)
        for tile in (self.scores, self.weighted):
            held = min(tile.rows, tile.vectors)
            yield from spilled(tile, machine_of(cpu, self.words), held)

    def __str__(self) -> str:
        which = "keys and values" if self.shape.interleaved or self.words else "keys"
        packed = f", {which} packed" if self.packed else ""
        packed += f", of words of {WORD} bfloat16" if self.words else ""
        return (
            f"{self.lanes} queries a task, {self.tasks} tasks, register tiles "
            f"{self.scores.rows} keys x {self.scores.vectors} vectors and "
            f"{self.weighted.rows} queries x {self.weighted.vectors} vectors{packed}"
        )

    @property
    def depth(self) -> int:
        """Products of a score."""
        return steps_of(self.shape.depth, self.words)

    @property
    def keys(self) -> int:
        """Products of an element of the result."""
        return steps_of(self.shape.keys, self.words)

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


def is_of_words(ops: Ops, shape: Shape, cpu: Machine) -> bool:
    """Whether both products are of words: where the model has them in bfloat16, and each number
    that is rounded is multiplied often. What fits every size is of floats.
    """
    asked = all(product.attrs.get("may_round_to") == HELD for product in ops.of("batch_matmul"))
    often = min(shape.queries, shape.keys, shape.columns) >= LEAST_PRODUCTS and shape.depth > 1
    return asked and often and bool(cpu.products_of_bfloat16) and not for_every_size()
