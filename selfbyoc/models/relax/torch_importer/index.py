"""Indexing by tensors: PyTorch counts negative indices from the end, TVM reads before the data.

Sizes may be symbols: an index from the end is then known when the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax

from ....tvm import tir
from ....tvm.types import Expr
from .node import Importing, argument, as_type, refused

if TYPE_CHECKING:
    import torch

Extent = Any  # int, or an expression of TIR


def _index(node: torch.fx.Node, importer: Importing) -> Expr:
    """`data[i, :, j]`: the indexed axes as one, of which rows are taken. The frontend takes index
    after index, which is right for orthogonal ones only, and broadcasts none.
    """
    import torch

    data, indices = node.args
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    if any(index.meta["val"].dtype == torch.bool for index in given.values()):
        return importer._index_tensor(node)
    emit, x = importer.block_builder.emit, importer.env[data]
    shape = _extents(x)
    places = {a: _from_front(emit, importer.env[i], shape[a]) for a, i in given.items()}
    if len(places) == 1:
        ((axis, place),) = places.items()
        return emit(relax.op.take(x, place, axis))
    rest = [axis for axis in range(len(shape)) if axis not in places]
    joined, row = math.prod(shape[axis] for axis in places), [shape[axis] for axis in rest]
    rows = emit(relax.op.permute_dims(x, [*places, *rest]))
    rows = emit(relax.op.reshape(rows, (joined, *row)))
    found = emit(relax.op.take(rows, _joined(emit, places, shape), 0))
    rank, first, last = found.ty.ndim - len(rest), min(places), max(places)
    if last - first >= len(places) or first == 0:  # not side by side: in front
        return found
    front, back = range(rank, rank + first), range(rank + first, found.ty.ndim)
    return emit(relax.op.permute_dims(found, [*front, *range(rank), *back]))


def _joined(
    emit: Callable[[Expr], Expr], places: Mapping[int, Expr], shape: Sequence[Extent]
) -> Expr:
    """The place in all indexed axes taken as one. Of a place outside of its axis the nearest:
    `take` looks at the joined one only, which may lie inside.
    """
    whole: Any = None
    for axis, place in places.items():
        size = _tensor(emit, shape[axis])
        last = relax.op.subtract(size, relax.const(1, "int64"))
        inside = relax.op.minimum(relax.op.maximum(place, relax.const(0, "int64")), last)
        if whole is not None:
            inside = relax.op.add(relax.op.multiply(whole, size), inside)
        whole = emit(inside)
    return whole


def _select(node: torch.fx.Node, importer: Importing) -> Expr:
    """One place of an axis."""
    given, axis, place = node.args
    emit, x = importer.block_builder.emit, importer.env[given]
    axis %= x.ty.ndim
    size = _extents(x)[axis]
    at = place % size if isinstance(size, int) else place
    where = relax.const(at, "int64")
    if at < 0:
        where = emit(relax.op.add(_tensor(emit, size), where))
    return emit(relax.op.take(x, where, axis))


def _take(node: torch.fx.Node, importer: Importing) -> Expr:
    """Of all elements in a row."""
    emit = importer.block_builder.emit
    given, index = (importer.env[argument] for argument in node.args)
    size = math.prod(_extents(given))
    row = emit(relax.op.reshape(given, (size,)))
    return emit(relax.op.take(row, _from_front(emit, index, size), 0))


def _index_put(node: torch.fx.Node, importer: Importing) -> Expr:
    """`data[:, :, index] = values` along one axis: the frontend has it of one index for each axis
    only. Of an index of nothing PyTorch raises, which what calls a library sees of one axis.
    """
    import torch

    data, indices = node.args[:2]
    given = {axis: index for axis, index in enumerate(indices) if index is not None}
    ((axis, index), *others), rank = given.items(), data.meta["val"].ndim
    if others and len(given) < rank:
        raise refused(node, f"expected an index of one axis or of each, found {len(given)}")
    places = index.meta["val"]
    if others or places.ndim > 1 or places.dtype == torch.bool:
        return importer._index_put(node)
    emit, shape = importer.block_builder.emit, _extents(importer.env[data])
    shape[axis] = _extents(importer.env[index])[0] if places.ndim else 1
    values = as_type(node.args[2], data.meta["val"].dtype, importer)
    if not places.ndim and values.ty.ndim > rank - axis - 1:  # an axis that the index takes away
        values = emit(relax.op.expand_dims(values, axis - rank))
    along = [shape[axis] if place == axis else 1 for place in range(rank)]
    where = emit(relax.op.reshape(importer.env[index], along))
    where, values = (
        emit(relax.op.broadcast_to(each, relax.ShapeExpr(shape))) for each in (where, values)
    )
    reduction = "add" if argument(node, 3, "accumulate") else "update"
    return emit(relax.op.scatter_elements(importer.env[data], where, values, axis, reduction))


def _scatter_add(node: torch.fx.Node, importer: Importing) -> Expr:
    """Of as many elements of the last argument as there are indices."""
    data, axis, index, source = node.args
    emit, x, places = importer.block_builder.emit, importer.env[source], importer.env[index]
    if data.meta["val"].ndim == 0:
        raise refused(node, "expected an axis, found none")
    shape = _extents(places)
    axes = list(range(len(shape)))
    if shape != _extents(x):
        x = emit(relax.op.strided_slice(x, axes, [0] * len(axes), shape))
    axis %= len(axes)
    return emit(relax.op.scatter_elements(importer.env[data], places, x, axis, "add"))


def _unfold(node: torch.fx.Node, importer: Importing) -> Expr:
    """The windows of an axis, each of which becomes a row of a last axis."""
    given, axis, size, step = node.args
    emit, x = importer.block_builder.emit, importer.env[given]
    if not x.ty.ndim:
        raise refused(node, "expected an axis, found none")
    axis %= x.ty.ndim
    extent = _extents(x)[axis]
    if not isinstance(extent, int):
        raise refused(node, "expected an axis of known size")
    places = np.arange(0, extent - size + 1, step)[:, None] + np.arange(size)
    found = emit(relax.op.take(x, relax.const(places, "int64"), axis))
    order = [place for place in range(found.ty.ndim) if place != axis + 1]
    return emit(relax.op.permute_dims(found, [*order, axis + 1]))


def _from_front(emit: Callable[[Expr], Expr], index: Expr, size: Extent) -> Expr:
    """An index whose negative places count from the end."""
    if index.ty.dtype != "int64":
        index = emit(relax.op.astype(index, "int64"))
    below = relax.op.less(index, relax.const(0, "int64"))
    return emit(relax.op.where(below, relax.op.add(index, _tensor(emit, size)), index))


def _extents(x: Expr) -> list[Extent]:
    return [int(e) if isinstance(e, tir.IntImm) else e for e in x.ty.shape.values]


def _tensor(emit: Callable[[Expr], Expr], size: Extent) -> Expr:
    """A size as a tensor of no axis; of a symbol, what it is when the model runs."""
    if isinstance(size, int):
        return relax.const(size, "int64")
    found = emit(relax.op.shape_to_tensor(relax.ShapeExpr([size])))
    return emit(relax.op.reshape(found, ()))


CONVERTERS = {
    "index.Tensor": _index,
    "index_put.default": _index_put,
    "scatter_add.default": _scatter_add,
    "select.int": _select,
    "take.default": _take,
    "unfold.default": _unfold,
}
