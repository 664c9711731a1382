"""The extents of an attention, and in which form it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...._tvm import te
from ....language.decisions import choose

Read = Callable[..., Any]  # index -> element
VECTOR = 16  # one AVX-512 vector of float32, two AVX2 ones
ROWS = 8  # keys or queries of a register tile


@dataclass(frozen=True)
class Shape:
    """Extents of one attention, and how many queries one block has."""

    batch: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    columns: int
    interleaved: bool  # [batch, sequence, heads, depth], as dense layers leave it
    lanes: int  # queries of a block
    few: bool  # lanes are columns instead, and a query is a task

    @property
    def products(self) -> int:
        """Multiplications of both products, the padding included."""
        keys, queries = self.key_rows, self.blocks * self.lanes
        return math.prod(self.batch) * queries * keys * (self.depth + self.width)

    @property
    def blocks(self) -> int:
        """Blocks of queries."""
        return -(-self.queries // self.lanes)

    @property
    def key_rows(self) -> int:
        """Keys with the copies of the last one, so that they come in whole tiles."""
        return -(-self.keys // ROWS) * ROWS

    @property
    def width(self) -> int:
        """Columns of the values in whole vectors."""
        return -(-self.columns // VECTOR) * VECTOR


def shape_of(ops: Any) -> Shape:
    """The extents, from the two products."""
    first, second = ops.of("batch_matmul")
    *batch, queries, keys = first.outputs[0][0]
    depth = first.inputs[0][0][-2 if first.attrs["transpose_a"] else -1]
    columns = second.inputs[1][0][-2 if second.attrs["transpose_b"] else -1]
    few, lanes = _few(queries), _lanes(queries)
    return Shape(tuple(batch), queries, keys, depth, columns, bool(ops.of("transpose")), lanes, few)


def _few(queries: int) -> bool:
    """Whether most lanes of queries would be copies: 16 of them cost as much as 4 rows of keys each
    times its query.
    """
    return choose("few_queries", (True, False) if queries <= VECTOR else (False,), queries <= 4)


def _lanes(queries: int) -> int:
    """Two vectors of queries to a block: a tile of 8 x 2 vectors is fastest; one if few."""
    sizes = [n * VECTOR for n in (1, 2, 4) if queries > (n - 1) * VECTOR]
    return choose("queries_of_a_block", sizes, 2 * VECTOR if queries > VECTOR else VECTOR)


def laid_out(element: Read, shape: Shape) -> Any:
    """The result, from its element at (batch ..., query, column)."""
    batch, rest = shape.batch, (shape.queries, shape.columns)
    if shape.interleaved:
        extents = (batch[0], shape.queries, batch[1], shape.columns)
        return te.compute(extents, lambda b, m, h, e: element(b, h, m, e), name="result")
    return te.compute((*batch, *rest), element, name="result")
