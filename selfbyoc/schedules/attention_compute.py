"""Attention as te.compute: the stages that the schedule melts.

m is a query, n a key, d the shared axis, e a column of the values. Queries come in blocks of
`lanes`, and a query is a lane: scores lie as [key, lane], so that the largest score and the sum
of a query are taken down the lanes and no vector is ever reduced or turned. The second product
broadcasts a score and reads a vector of a value's columns. What lies behind the last query or key
is a copy of it, read again: no lane needs a condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._tvm import te, tir
from ..codegen import mathfn

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

    @property
    def products(self) -> int:
        """Multiplications of both products, the padding included."""
        keys, queries = self.key_rows, self.blocks * self.lanes
        return math.prod(self.batch) * queries * keys * (self.depth + self.width)

    @property
    def lanes(self) -> int:
        """Two vectors of queries to a block: a tile of 8 x 2 vectors is fastest; one if few."""
        return 2 * VECTOR if self.queries > VECTOR else VECTOR

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
    return Shape(tuple(batch), queries, keys, depth, second.outputs[0][0][-1])


def attention(q: Any, k: Any, v: Any, scale: Any = None, mask: Any = None, *, ops: Any) -> Any:
    """The whole composite; `ops` says what was matched."""
    shape = shape_of(ops)
    products = _products(_queries(q, scale, ops, shape), k, ops, shape)
    power, total = _softmax(_scores(products, mask, ops, shape), shape)
    return _weighted(power, total, _values(v, ops, shape), shape)


def _read(tensor: Any, *index: Any) -> Any:
    """An element of a tensor at an index of a shape that it broadcasts to."""
    last = index[len(index) - len(tensor.shape) :]
    return tensor(*(0 if int(e) == 1 else i for e, i in zip(tensor.shape, last, strict=True)))


def _scaling(ops: Any) -> str | None:
    """The kind of the op that scales, if there is one."""
    return next((view.kind for view in ops if view.kind in ("multiply", "divide")), None)


def _apply(kind: str, value: Any, scale: Any) -> Any:
    return value * scale if kind == "multiply" else tir.div(value, scale)


def _queries(q: Any, scale: Any, ops: Any, shape: Shape) -> Any:
    """[block, d, lane]; scaled here, where there are fewest elements."""
    turned, scaling, ndim = (
        ops.of("batch_matmul")[0].attrs["transpose_a"],
        _scaling(ops),
        len(shape.batch),
    )

    def element(*i: Any) -> Any:
        m = tir.Min(i[ndim] * shape.lanes + i[-1], shape.queries - 1)
        at = (*i[:ndim], i[-2], m) if turned else (*i[:ndim], m, i[-2])
        value = _read(q, *at)
        return value if scaling is None else _apply(scaling, value, _read(scale, *at))

    return te.compute(
        (*shape.batch, shape.blocks, shape.depth, shape.lanes), element, name="queries"
    )


def _products(queries: Any, k: Any, ops: Any, shape: Shape) -> Any:
    turned, ndim = ops.of("batch_matmul")[0].attrs["transpose_b"], len(shape.batch)
    d = te.reduce_axis((0, shape.depth), name="d")

    def element(*i: Any) -> Any:
        n = tir.Min(i[-2], shape.keys - 1)
        key = _read(k, *i[:ndim], n, d) if turned else _read(k, *i[:ndim], d, n)
        return te.sum(key * queries(*i[:-2], d, i[-1]), axis=d)

    return te.compute(
        (*shape.batch, shape.blocks, shape.key_rows, shape.lanes), element, name="products"
    )


def _scores(products: Any, mask: Any, ops: Any, shape: Shape) -> Any:
    """With the mask; one along a single axis was read as a bias."""
    ndim, bias = len(shape.batch), ops.of("bias_add")

    def element(*i: Any) -> Any:
        value = products(*i)
        if mask is None:
            return value
        m = tir.Min(i[ndim] * shape.lanes + i[-1], shape.queries - 1)
        at = (*i[:ndim], m, tir.Min(i[-2], shape.keys - 1))
        return value + (mask(at[bias[0].attrs["axis"]]) if bias else _read(mask, *at))

    return te.compute(products.shape, element, name="scores")


def _softmax(scores: Any, shape: Shape) -> tuple[Any, Any]:
    """The powers and their sum; the division waits for the result, which has fewer elements."""
    rows = (*shape.batch, shape.blocks, shape.lanes)
    n, s = (te.reduce_axis((0, shape.keys), name=name) for name in "ns")
    peak = te.compute(rows, lambda *i: te.max(scores(*i[:-1], n, i[-1]), axis=n), name="peak")
    power = te.compute(
        (*rows[:-1], shape.keys, shape.lanes),
        lambda *i: mathfn.exp(scores(*i) - peak(*i[:-2], i[-1])),
        name="power",
    )
    return power, te.compute(
        rows, lambda *i: te.sum(power(*i[:-1], s, i[-1]), axis=s), name="total"
    )


def _values(v: Any, ops: Any, shape: Shape) -> Any:
    """[n, e] with e contiguous and in whole vectors; as they are, if they lie so."""
    turned, ndim = ops.of("batch_matmul")[1].attrs["transpose_b"], len(shape.batch)
    if not turned and shape.width == shape.columns:
        return v

    def element(*i: Any) -> Any:
        value = _read(v, *i[:ndim], i[-1], i[-2]) if turned else _read(v, *i)
        if shape.width == shape.columns:
            return value
        return tir.if_then_else(i[-1] < shape.columns, value, tir.const(0, "float32"))

    return te.compute((*shape.batch, shape.keys, shape.width), element, name="values")


def _weighted(power: Any, total: Any, values: Any, shape: Shape) -> Any:
    """The second product in tiles of 8 queries, normalised, then its real elements."""
    ndim, per_block = len(shape.batch), shape.lanes // ROWS
    n = te.reduce_axis((0, shape.keys), name="n")

    def lane(*i: Any) -> tuple[Any, Any]:
        return tir.floordiv(i[ndim], per_block), tir.floormod(i[ndim], per_block) * ROWS + i[
            ndim + 1
        ]

    def product(*i: Any) -> Any:
        block, at = lane(*i)
        return te.sum(power(*i[:ndim], block, n, at) * _read(values, *i[:ndim], n, i[-1]), axis=n)

    def normal(*i: Any) -> Any:
        block, at = lane(*i)
        return weighted(*i) / total(*i[:ndim], block, at)

    tiles = (*shape.batch, shape.blocks * per_block, ROWS, shape.width)
    weighted = te.compute(tiles, product, name="weighted")
    normalised = te.compute(tiles, normal, name="normalised")
    return te.compute(
        (*shape.batch, shape.queries, shape.columns),
        lambda *i: normalised(
            *i[:ndim], tir.floordiv(i[ndim], ROWS), tir.floormod(i[ndim], ROWS), i[-1]
        ),
        name="result",
    )
