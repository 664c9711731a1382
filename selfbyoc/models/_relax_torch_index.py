"""Indexing by tensors: PyTorch counts negative indices from the end, TVM reads before the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from ._relax_torch_node import refused


def _index(node: Any, importer: Any) -> Any:
    """The frontend's own reading, of indices that count from the front."""
    import torch

    data, indices = node.args
    shape = data.meta["val"].shape
    _check(node, [i.meta["val"].shape for i in indices if i is not None], None in indices)
    saved = dict(importer.env)
    for axis, index in enumerate(indices):
        if index is not None and index.meta["val"].dtype != torch.bool:
            x = importer.env[index]
            size = relax.const(int(shape[axis]), x.ty.dtype)
            below = relax.op.less(x, relax.const(0, x.ty.dtype))
            moved = relax.op.where(below, relax.op.add(x, size), x)
            importer.env[index] = importer.block_builder.emit(moved)
    try:
        return importer._index_tensor(node)
    finally:
        importer.env.update({index: saved[index] for index in indices if index is not None})


def _check(node: Any, shapes: Sequence[Any], is_partial: bool) -> None:
    """Beside whole axes the frontend takes index after index: right where no two of them run
    along the same axis.
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    if is_partial and any(
        sum(e != 1 for e in extents) > 1 for extents in zip(*padded, strict=True)
    ):
        raise refused(node, "several tensors index it together, beside axes that stay whole")


def _select(node: Any, importer: Any) -> Any:
    """One place of an axis."""
    given, axis, place = node.args
    size = int(given.meta["val"].shape[axis])
    where = relax.const(place % size, "int64")
    return importer.block_builder.emit(relax.op.take(importer.env[given], where, axis))


def _take(node: Any, importer: Any) -> Any:
    """Of all elements in a row."""
    emit = importer.block_builder.emit
    given, index = node.args
    x, size = importer.env[index], int(given.meta["val"].numel())
    below = relax.op.less(x, relax.const(0, x.ty.dtype))
    where = emit(relax.op.where(below, relax.op.add(x, relax.const(size, x.ty.dtype)), x))
    row = emit(relax.op.reshape(importer.env[given], (size,)))
    return emit(relax.op.take(row, where, 0))


CONVERTERS = {"take.default": _take, "index.Tensor": _index, "select.int": _select}
