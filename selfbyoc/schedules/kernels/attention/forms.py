"""Attention as it is planned: few queries, or blocks of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ....codegen.info.ops import Ops
from ....language.decisions import for_every_size, is_symbolic
from ....machine import Machine
from ....tvm.own_ops import BFLOATS, LEVELS_OF, PAIRS
from ...steps.faults import Faults, outside, spilled, undivided, unlike
from ...steps.tiles import BLOCK, RegisterTile
from ..bfloat16 import HELD, LEAST_PRODUCTS, machine_of
from ..pairs import machine_of_pairs
from ..words import words_of

# [batch, sequence, heads, depth] -> [batch, heads, sequence, depth]
HEADS = (0, 2, 1, 3)
KEYS_BY_DEPTH = (0, 2, 3, 1)  # the same, and transposed


def turned(ops: Ops) -> Mapping[str, bool]:
    """Which of queries, keys and values lie as columns, one after the other: by the products, or by
    a transpose of levels before.
    """
    first, second = ops.of("batch_matmul")
    swapped = {ops.packing(call, 0).arg for call in ops.of("transpose")}
    found = {
        "q": first.attrs["transpose_a"],
        "k": not first.attrs["transpose_b"],
        "v": second.attrs["transpose_b"],
    }
    return {name: bool(columns) != (name in swapped) for name, columns in found.items()}


def interleaved_ones(ops: Ops) -> frozenset[str]:
    """Which of queries, keys, values and the result have their heads inside of the sequence."""
    moves = [call for call in ops.of("transpose") if call.attrs["axes"] in (HEADS, KEYS_BY_DEPTH)]
    return frozenset(ops.packing(call, 0).arg or "result" for call in moves)


@dataclass(frozen=True)
class Shape:
    """Extents of one attention."""

    batch: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    columns: int
    # Which of "q", "k", "v" and "result" are [batch, sequence, heads, depth]: as dense layers and
    # caches leave them.
    interleaved: frozenset[str]
    key_rows: bool  # a head's keys lie one after the other, not interleaved or transposed

    @classmethod
    def of(cls, ops: Ops) -> Shape:
        """From the two products."""
        first, second = ops.of("batch_matmul")
        *batch, queries, keys = first.outputs[0][0]
        depth = first.inputs[0][0][-2 if first.attrs["transpose_a"] else -1]
        columns = second.inputs[1][0][-2 if second.attrs["transpose_b"] else -1]
        interleaved = interleaved_ones(ops)
        # Of keys for all heads of queries, say.
        one_head = "k" in interleaved and first.inputs[1][0][-3] == 1
        key_rows = one_head if "k" in interleaved else not turned(ops)["k"]
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
    words: str = ""  # of what both sums are: PAIRS of levels, BFLOATS; "" of floats
    parts: int = 1  # partial sums of a row of powers

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of this plan."""
        shape, vectors = self.shape, self.lanes // self.vector
        yield from unlike("words", self.words, words_for(ops, shape, cpu))
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
        is_packed = bool(self.words) or (self.packed and not shape.key_rows)
        yield from unlike("packed", self.packed, is_packed)
        for tile in (self.scores, self.weighted):
            held = min(tile.rows, tile.vectors)
            yield from spilled(tile, machine_for(cpu, self.words), held)

    def __str__(self) -> str:
        both = "v" in self.shape.interleaved or self.words
        which = "keys and values" if both else "keys"
        packed = f", {which} packed" if self.packed else ""
        packed += f", of words of {self.word} {_OF[self.words]}" if self.words else ""
        return (
            f"{self.lanes} queries a task, {self.tasks} tasks, register tiles "
            f"{self.scores.rows} keys x {self.scores.vectors} vectors and "
            f"{self.weighted.rows} queries x {self.weighted.vectors} vectors{packed}"
        )

    @property
    def word(self) -> int:
        """Elements of a word; of floats 1."""
        return LEVELS_OF[self.words] if self.words else 1

    @property
    def depth(self) -> int:
        """Steps of a score's sum."""
        return words_of(self.shape.depth, self.word)

    @property
    def keys(self) -> int:
        """Steps of a result's sum."""
        return words_of(self.shape.keys, self.word)

    @property
    def powers(self) -> int:
        """Of a row, with zeros after the last one, so that they fill words and parts."""
        return words_of(self.shape.keys, self._whole) * self._whole

    @property
    def has_padding(self) -> bool:
        """Whether zeros come after the last power."""
        keys = self.shape.keys
        return self._whole > 1 and (is_symbolic(keys) or keys % self._whole > 0)

    @property
    def rows_in_vectors(self) -> bool:
        """Whether a row of packed keys is one of a known length: of others LLVM makes vectors."""
        along_keys = self.word > 1 and not self.shape.key_rows
        return not (along_keys and is_symbolic(self.shape.keys))

    @property
    def _whole(self) -> int:
        return math.lcm(self.word, self.parts)

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


_OF = {PAIRS: "levels", BFLOATS: HELD}


def machine_for(cpu: Machine, words: str) -> Machine:
    """A machine as products of such words are."""
    return machine_of_pairs(cpu) if words == PAIRS else machine_of(cpu, words == BFLOATS)


def words_for(ops: Ops, shape: Shape, cpu: Machine) -> str:
    """Of what words both products are: of levels, or of bfloat16 where the model has them in that,
    and each number that is rounded is multiplied often. What fits every size is of floats.
    """
    if ops.of("dequantize"):
        return PAIRS
    asked = all(product.attrs.get("may_round_to") == HELD for product in ops.of("batch_matmul"))
    often = min(shape.queries, shape.keys, shape.columns) >= LEAST_PRODUCTS and shape.depth > 1
    is_fast = bool(cpu.products_of_bfloat16) and not for_every_size()
    return BFLOATS if asked and often and is_fast else ""
