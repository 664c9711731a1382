"""Forms of arithmetic: remainders of floats, powers of two dtypes, norms, determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _remainder(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Of floats with the sign of the divisor: TVM's has none of what is infinite."""
    dtype = graph.dtype(node.input[0])
    if attributes(node).get("fmod", 0) or dtype is None or dtype.kind != "f":
        return None
    steps, (x, y), none = Steps(graph, node), node.input, np.zeros((), dtype)
    rest = steps("Mod", x, y, fmod=1)
    is_below = steps("Less", y, none)
    is_other = steps("Xor", steps("Less", rest, none), is_below)
    is_none = steps("Equal", rest, none)
    moved = steps("Where", is_other, steps("Add", rest, y), rest)
    signed = steps("Where", is_below, np.asarray(-0.0, dtype), none)
    return steps.instead(steps("Where", is_none, signed, moved))


def _power(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Of two dtypes, or of integers: TVM's is of floats of one dtype."""
    kinds = [graph.dtype(name) for name in node.input]
    base, exponent = kinds
    if base is None or exponent is None or (base.kind == "f" and base == exponent):
        return None
    steps = Steps(graph, node)
    wide = base if base.kind == "f" else np.dtype("float64")
    given = [
        name if kind == wide else steps.cast(name, wide)
        for name, kind in zip(node.input, kinds, strict=True)
    ]
    found = steps("Pow", *given)
    if wide != base:
        found = steps.cast(steps("Round", found) if exponent.kind in "iu" else found, base)
    return steps.instead(found)


def _sign(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Of floats: that of NaN is NaN; TVM's is 0, as PyTorch's."""
    dtype, x = graph.dtype(node.input[0]), node.input[0]
    if dtype is None or dtype.kind != "f":
        return None
    steps, one, none = Steps(graph, node), np.ones((), dtype), np.zeros((), dtype)
    below = steps("Where", steps("Less", x, none), -one, x)
    return steps.instead(steps("Where", steps("Greater", x, none), one, below))


def _normal(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """An LpNormalization; of what is all zeros, zeros."""
    given, dtype, x = attributes(node), graph.dtype(node.input[0]), node.input[0]
    if dtype is None:
        return None
    steps = Steps(graph, node)
    size = steps.over(f"ReduceL{given.get('p', 2)}", x, [given.get("axis", -1)], keepdims=1)
    is_none = steps("Equal", size, np.zeros((), dtype))
    return steps.instead(steps("Div", x, steps("Where", is_none, np.ones((), dtype), size)))


def _determinant(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """By elimination, the largest element of each column first."""
    shape, dtype = graph.shape(node.input[0]), graph.dtype(node.input[0])
    if shape is None or dtype is None:
        return None
    count, steps = shape[-1], Steps(graph, node)
    x = steps("Reshape", node.input[0], [-1, count, count])
    numbers, one = np.arange(count), np.ones((), dtype)
    found = steps.constant(np.ones((1, 1, 1), dtype))
    for n in range(count):
        column = steps("Slice", x, [n], [n + 1], [2])
        left = (numbers >= n)[:, None]
        sizes = steps("Where", left, steps("Abs", column), -one)
        place = steps("ArgMax", sizes, axis=1, keepdims=1)
        is_it = steps.cast(steps("Equal", place, numbers[:, None]), dtype)
        is_first = (numbers == n)[:, None].astype(dtype)
        row = steps.over("ReduceSum", steps("Mul", x, is_it), [1], keepdims=1)
        first = steps("Slice", x, [n], [n + 1], [1])
        apart = steps("Sub", first, row)
        x = steps("Add", x, steps("Mul", steps("Sub", is_it, is_first), apart))
        head = steps("Slice", row, [n], [n + 1], [2])
        swapped = steps("Equal", place, np.int64(n))
        sign = steps("Where", swapped, one, -one)
        found = steps("Mul", found, steps("Mul", head, sign))
        safe = steps("Where", steps("Equal", head, np.zeros((), dtype)), one, head)
        below = np.asarray(numbers > n, dtype)[:, None]
        factors = steps("Div", steps("Mul", steps("Slice", x, [n], [n + 1], [2]), below), safe)
        x = steps("Sub", x, steps("Mul", factors, row))
    return steps.instead(steps("Reshape", found, np.asarray(shape[:-2], np.int64)))


def _by_squares(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """An RMSNormalization over all axes, for which 0.27 builds nothing."""
    given, rank, dtype = attributes(node), graph.rank(node.input[0]), graph.dtype(node.input[0])
    if rank is None or dtype is None or given.get("axis", -1) % rank:
        return None
    steps, x = Steps(graph, node), node.input[0]
    wide = np.dtype("float32") if dtype.itemsize < 4 else dtype
    x = x if dtype == wide else steps.cast(x, wide)
    mean = steps.over("ReduceMean", steps("Mul", x, x), list(range(rank)), keepdims=1)
    root = steps("Sqrt", steps("Add", mean, np.asarray(given.get("epsilon", 1e-5), wide)))
    normal = steps("Div", x, root)
    normal = normal if dtype == wide else steps.cast(normal, dtype)
    return steps.instead(steps("Mul", normal, node.input[1]))


def _layer_norm(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A LayerNormalization whose mean or whose spread is read, too."""
    rank, dtype, given = graph.rank(node.input[0]), graph.dtype(node.input[0]), attributes(node)
    if not any(name in graph.read for name in node.output[1:]) or rank is None or dtype is None:
        return None
    steps, wide = Steps(graph, node), np.dtype("float32")
    x = node.input[0] if dtype == wide else steps.cast(node.input[0], wide)
    axes = list(range(given.get("axis", -1) % rank, rank))
    mean = steps.over("ReduceMean", x, axes, keepdims=1)
    centred = steps("Sub", x, mean)
    spread = steps.over("ReduceMean", steps("Mul", centred, centred), axes, keepdims=1)
    moved = steps("Add", spread, np.float32(given.get("epsilon", 1e-5)))
    inverse = steps("Reciprocal", steps("Sqrt", moved))
    normal = steps("Mul", centred, inverse)
    normal = normal if dtype == wide else steps.cast(normal, dtype)
    found = steps("Mul", normal, node.input[1])
    if len(node.input) > 2 and node.input[2]:
        found = steps("Add", found, node.input[2])
    return steps.instead(found, mean, inverse)


def _turned(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A SpaceToDepth whose columns and rows come after the depth."""
    shape, given = graph.shape(node.input[0]), attributes(node)
    if given.get("mode", b"DCR") != b"CRD" or shape is None:
        return None
    steps, size = Steps(graph, node), given["blocksize"]
    n, c, h, w = shape
    parts = steps("Reshape", node.input[0], [n, c, h // size, size, w // size, size])
    moved = steps("Transpose", parts, perm=[0, 1, 3, 5, 2, 4])
    return steps.instead(steps("Reshape", moved, [n, c * size * size, h // size, w // size]))


FORMS = {
    "Det": _determinant, "LayerNormalization": _layer_norm, "LpNormalization": _normal,
    "Mod": _remainder, "Pow": _power, "RMSNormalization": _by_squares, "Sign": _sign,
    "SpaceToDepth": _turned,
}  # fmt: skip
