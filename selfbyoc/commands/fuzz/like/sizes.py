"""Other sizes: of one extent wherever it is, of the batch, of images."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ....common.optional import extra
from ....models.onnx.graph import Graph, attributes
from .attributes import set_attributes
from .cut import scale

if TYPE_CHECKING:
    import onnx

_LISTS = 64  # elements of an integer constant that may be a shape
_SIZED = ("group", "shape", "split", "output_shape", "hidden_size", "num_groups", "num_heads")


def everywhere(graph: onnx.GraphProto, old: int, new: int) -> None:
    """One extent to another: of inputs, of constants, in shapes and in attributes."""
    onnx = extra("onnx")
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value == old:
                dim.dim_value = new
    for tensor in graph.initializer:
        before = onnx.numpy_helper.to_array(tensor)
        after = _resized(before, old, new)
        if after is not before:
            tensor.CopyFrom(onnx.numpy_helper.from_array(after, tensor.name))
    for node in graph.node:
        attrs = attributes(node)
        changed = {k: _exchanged(attrs[k], old, new) for k in _SIZED if k in attrs}
        if any(attrs[k] != v for k, v in changed.items()):
            set_attributes(node, {**attrs, **changed})


def _exchanged(value: Any, old: int, new: int) -> Any:
    if isinstance(value, list):
        return [new if v == old else v for v in value]
    return new if value == old else value


def _resized(array: np.ndarray, old: int, new: int) -> np.ndarray:
    if array.dtype in (np.int64, np.int32) and array.size <= _LISTS:
        return np.where(array == old, new, array).astype(array.dtype) if old in array else array
    axes = [n for n, e in enumerate(array.shape) if e == old]
    for axis in axes:
        places = np.arange(new)
        array = np.take(array, places % old, axis)
        if array.dtype.kind == "f":  # two equal channels would hide that they were exchanged
            shape = [1] * array.ndim
            shape[axis] = new
            array = array * (0.7 ** (places // old)).reshape(shape).astype(array.dtype)
    return np.ascontiguousarray(array) if axes else array  # which makes a vector of a number


def extents(graph: onnx.GraphProto) -> list[int]:
    """Those of inputs and of constants, of more than one."""
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.input]
    shapes += [list(t.dims) for t in graph.initializer]
    return sorted({extent for shape in shapes for extent in shape if extent > 1})


def mutate_extent(graph: Graph, rng: Random) -> str | None:
    """One extent wherever it is: channels with the weights that go with them, a length."""
    known = extents(graph.graph)
    if not known:
        return None
    old = rng.choice(known)
    new = rng.choice([1, 2, 3, 5, 7, 13, 17, old - 1, old + 1, max(1, old // 2), min(2 * old, 512)])
    if new in (0, old):
        return None
    everywhere(graph.graph, old, new)
    return f"extent {old} is {new}"


def _dims(graph: Graph, axis: int) -> Iterator[onnx.TensorShapeProto.Dimension]:
    for value in graph.graph.input:
        dims = value.type.tensor_type.shape.dim
        if len(dims) > max(1, axis):
            yield dims[axis]


def mutate_batch(graph: Graph, rng: Random) -> str | None:
    """The first axis of all inputs, and of the shapes that say it."""
    dims = list(_dims(graph, 0))
    if not dims:
        return None
    old, new = dims[0].dim_value, rng.choice((1, 2, 3, 5, 8))
    if old == new:
        return None
    for dim in dims:
        if dim.dim_value == old:
            dim.dim_value = new
    for node in graph.graph.node:
        shape = graph.constant(node.input[1]) if node.op_type == "Reshape" else None
        if shape is not None and shape.size and shape[0] == old:
            node.input[1] = graph.add(np.concatenate([[new], shape[1:]]).astype(np.int64))
    return f"batch {old} is {new}"


def mutate_image(graph: Graph, rng: Random) -> str | None:
    """Other heights and widths; one pixel, odd ones."""
    sizes = [d.dim_value for v in graph.graph.input for d in list(v.type.tensor_type.shape.dim)[2:]]
    if not sizes or max(sizes) < 2:
        return None
    wanted = rng.choice((1, 2, 3, 7, 11, 19, 23, 32, 37))
    more = rng.choice((1.0, 1.0, 1.6, 0.6))
    if wanted == max(sizes) and more == 1.0:
        return None
    scale(graph.graph, wanted / max(sizes), more)
    return f"images of {wanted} pixels, the last axis {more:g} times"
