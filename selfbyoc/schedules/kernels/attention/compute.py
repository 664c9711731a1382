"""Attention as te.compute: the stages that the schedule melts.

m is a query, n a key, d the shared axis, e a column of the values. Queries come in blocks of
`lanes`, and a query is a lane: scores lie as [key, lane], so that the largest score and the sum
of a query are taken down the lanes and no vector is ever reduced or turned. The second product
broadcasts a score and reads a vector of a value's columns. What lies behind the last query or key
is a copy of it, read again: no lane needs a condition.
"""

from __future__ import annotations

from typing import Any

from ...._tvm import te, tir
from ....compute import mathfn
from .few import attention_of_few
from .shape import ROWS, Read, Shape, laid_out, shape_of


def attention(q: Any, k: Any, v: Any, scale: Any = None, mask: Any = None, *, ops: Any) -> Any:
    """The whole composite; `ops` says what was matched."""
    shape, (first, second) = shape_of(ops), ops.of("batch_matmul")
    scaled = _scaled(_rows(q, shape, first.attrs["transpose_a"]), scale, ops)
    keys = _rows(k, shape, not first.attrs["transpose_b"])
    values = _rows(v, shape, second.attrs["transpose_b"])
    if shape.few:
        return attention_of_few(scaled, keys, values, _masked(mask, ops), shape)
    scores = _scores(_products(_queries(scaled, shape), keys, shape), _masked(mask, ops), shape)
    power, inverse = _softmax(scores, shape)
    turned = second.attrs["transpose_b"] and not shape.interleaved
    return _weighted(power, inverse, _values(values, turned, shape), shape)


def _read(tensor: Any, *index: Any) -> Any:
    """An element of a tensor at an index of a shape that it broadcasts to."""
    last = index[len(index) - len(tensor.shape) :]
    return tensor(*(0 if int(e) == 1 else i for e, i in zip(tensor.shape, last, strict=True)))


def _rows(tensor: Any, shape: Shape, turned: bool) -> Read:
    """An argument as [batch ..., row, column], however it lies."""
    if shape.interleaved:
        return lambda b, h, row, column: _read(tensor, b, row, h, column)
    if turned:
        return lambda *i: _read(tensor, *i[:-2], i[-1], i[-2])
    return lambda *i: _read(tensor, *i)


def _scaled(queries: Read, scale: Any, ops: Any) -> Read:
    """The scale is applied to the queries, where there are fewest elements."""
    kind = next((view.kind for view in ops if view.kind in ("multiply", "divide")), "")
    if not kind:
        return queries
    if kind == "multiply":
        return lambda *i: queries(*i) * _read(scale, *i)
    return lambda *i: tir.div(queries(*i), _read(scale, *i))


def _masked(mask: Any, ops: Any) -> Read:
    """A score with the mask; one along a single axis was read as a bias."""
    if mask is None:
        return lambda score, *i: score
    if ops.of("bias_add"):
        axis = ops.bias_add.attrs["axis"]
        return lambda score, *i: score + mask(i[axis])
    return lambda score, *i: score + _read(mask, *i)


def _queries(scaled: Read, shape: Shape) -> Any:
    """[block, d, lane]"""
    ndim = len(shape.batch)

    def element(*i: Any) -> Any:
        m = tir.Min(i[ndim] * shape.lanes + i[-1], shape.queries - 1)
        return scaled(*i[:ndim], m, i[-2])

    return te.compute(
        (*shape.batch, shape.blocks, shape.depth, shape.lanes), element, name="queries"
    )


def _products(queries: Any, keys: Read, shape: Shape) -> Any:
    ndim = len(shape.batch)
    d = te.reduce_axis((0, shape.depth), name="d")

    def element(*i: Any) -> Any:
        key = keys(*i[:ndim], tir.Min(i[-2], shape.keys - 1), d)
        return te.sum(key * queries(*i[:-2], d, i[-1]), axis=d)

    return te.compute(
        (*shape.batch, shape.blocks, shape.key_rows, shape.lanes), element, name="products"
    )


def _scores(products: Any, masked: Read, shape: Shape) -> Any:
    ndim = len(shape.batch)

    def element(*i: Any) -> Any:
        m = tir.Min(i[ndim] * shape.lanes + i[-1], shape.queries - 1)
        return masked(products(*i), *i[:ndim], m, tir.Min(i[-2], shape.keys - 1))

    return te.compute(products.shape, element, name="scores")


def _softmax(scores: Any, shape: Shape) -> tuple[Any, Any]:
    """The powers and the inverse of their sum; it multiplies the result, which has fewer
    elements.
    """
    rows = (*shape.batch, shape.blocks, shape.lanes)
    n, s = (te.reduce_axis((0, shape.keys), name=name) for name in "ns")
    peak = te.compute(rows, lambda *i: te.max(scores(*i[:-1], n, i[-1]), axis=n), name="peak")
    power = te.compute(
        (*rows[:-1], shape.keys, shape.lanes),
        lambda *i: mathfn.exp_of_difference(scores(*i) - peak(*i[:-2], i[-1])),
        name="power",
    )
    total = te.compute(rows, lambda *i: te.sum(power(*i[:-1], s, i[-1]), axis=s), name="total")
    one = tir.const(1.0, "float32")
    return power, te.compute(rows, lambda *i: one / total(*i), name="inverse")


def _values(values: Read, turned: bool, shape: Shape) -> Read:
    """[n, e] with e contiguous and in whole vectors; as they are, if they lie so."""
    if not turned and shape.width == shape.columns:
        return values

    def element(*i: Any) -> Any:
        if shape.width == shape.columns:
            return values(*i)
        return tir.if_then_else(i[-1] < shape.columns, values(*i), tir.const(0, "float32"))

    return te.compute((*shape.batch, shape.keys, shape.width), element, name="values")


def _weighted(power: Any, inverse: Any, values: Read, shape: Shape) -> Any:
    """The second product in tiles of 8 queries, normalised, then its real elements."""
    ndim, per_block = len(shape.batch), shape.lanes // ROWS
    n = te.reduce_axis((0, shape.keys), name="n")

    def lane(*i: Any) -> tuple[Any, Any]:
        at = tir.floormod(i[ndim], per_block) * ROWS + i[ndim + 1]
        return tir.floordiv(i[ndim], per_block), at

    def product(*i: Any) -> Any:
        block, at = lane(*i)
        return te.sum(power(*i[:ndim], block, n, at) * values(*i[:ndim], n, i[-1]), axis=n)

    def normal(*i: Any) -> Any:
        block, at = lane(*i)
        return weighted(*i) * inverse(*i[:ndim], block, at)

    tiles = (*shape.batch, shape.blocks * per_block, ROWS, shape.width)
    weighted = te.compute(tiles, product, name="weighted")
    normalised = te.compute(tiles, normal, name="normalised")
    return laid_out(
        lambda *i: normalised(
            *i[:ndim], tir.floordiv(i[ndim], ROWS), tir.floormod(i[ndim], ROWS), i[-1]
        ),
        shape,
    )
