"""Forms of reductions: along axes that are data, of nothing, of bools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...common.optional import extra
from .checks import IS_RELAY
from .graph import Graph, attributes, remade
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _reduction(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    forms = (_known_axes, _of_nothing, _along_data, _of_bools, _of_infinity, _axes_as_attribute)
    for form in forms:
        found = form(node, graph)
        if found is not None:
            return found
    return None


def axes_of(node: onnx.NodeProto, graph: Graph) -> list[int] | None:
    """The axes that a reduction takes away, counted from 0; None where they are data, or the number
    of axes is not known.
    """
    given, rank = attributes(node), graph.rank(node.input[0])
    axes = given.get("axes", [])
    if len(node.input) > 1 and node.input[1]:
        known = graph.constant(node.input[1])
        shape = graph.shape(node.input[1])
        if known is None and (not shape or shape[0] != rank):
            return None
        axes = [] if known is None else known.reshape(-1).tolist()  # all of them, in some order
    if rank is None:
        return None
    if not len(axes):
        return [] if given.get("noop_with_empty_axes", 0) else list(range(rank))
    return sorted(int(axis) % rank for axis in axes)


def _known_axes(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Axes that are an input, and yet known: an empty one, or as many as there are."""
    axes = axes_of(node, graph)
    is_given = len(node.input) > 1 and node.input[1]
    if axes is None or not is_given or _is_constant(node.input[1], graph):
        return None
    if not axes:
        return [remade(node, "Identity", node.input[:1], {})]
    found = remade(node, inputs=[node.input[0], graph.add(np.asarray(axes, np.int64))])
    return _axes_as_attribute(found, graph) or [found]


def _is_constant(name: str, graph: Graph) -> bool:
    value = graph.constant(name)
    return value is not None and value.size > 0


def _of_nothing(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """What it gives for no elements; TVM leaves the result as the memory was."""
    shape, axes = graph.shape(node.input[0]), axes_of(node, graph)
    if not axes or shape is None or 0 not in [shape[axis] for axis in axes]:
        return None
    dtype = graph.dtype(node.input[0]) or np.dtype("float32")
    keeps = attributes(node).get("keepdims", 1)
    left = [1 if n in axes else int(e) for n, e in enumerate(shape) if keeps or n not in axes]
    value = _tensor(node.op_type, dtype, left)
    return [remade(node, "Constant", [], {"value": value})]


def _tensor(op: str, dtype: np.dtype, shape: Sequence[int] = (1,)) -> onnx.TensorProto:
    return extra("onnx").numpy_helper.from_array(np.full(shape, _nothing(op, dtype)))


def _nothing(op: str, dtype: np.dtype) -> np.ndarray:
    if op in ("ReduceMax", "ReduceMin"):
        low, high = (0, 1) if dtype.kind == "b" else (-np.inf, np.inf)
        if dtype.kind in "iu":
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.asarray(low if op == "ReduceMax" else high, dtype)
    with np.errstate(invalid="ignore"):
        return np.asarray(_NOTHING.get(op, 0), dtype)


_NOTHING = {
    "ReduceProd": 1, "ReduceMean": np.nan, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf,
}  # fmt: skip


def _of_bools(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """The largest or the smallest bool, as a byte."""
    if graph.dtype(node.input[0]) != np.bool_:
        return None
    steps = Steps(graph, node)
    found = steps.graph.free_name(f"{node.output[0]}.bytes")
    reduced = remade(node, inputs=[steps.cast(node.input[0], np.int8), *node.input[1:]])
    reduced.output[:] = [found]
    steps.nodes.append(reduced)
    return steps.instead(steps.cast(found, np.bool_))


def _of_infinity(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """The logarithm of a sum of powers with 0 for a largest element that is infinite: both
    frontends take it from itself, which is NaN.
    """
    axes, dtype = axes_of(node, graph), graph.dtype(node.input[0])
    is_float = dtype is not None and dtype.kind == "f"
    if node.op_type != "ReduceLogSumExp" or not axes or not is_float:
        return None
    steps, x, keeps = Steps(graph, node), node.input[0], attributes(node).get("keepdims", 1)
    peak = steps.over("ReduceMax", x, axes, keepdims=1)
    ends = [steps("Equal", peak, np.asarray(end, dtype)) for end in (-np.inf, np.inf)]
    peak = steps("Where", steps("Or", *ends), np.asarray(0, dtype), peak)
    power = steps("Exp", steps("Sub", x, peak))
    logarithm = steps("Log", steps.over("ReduceSum", power, axes, keepdims=keeps))
    if not keeps:
        peak = steps.over("Squeeze", peak, axes)
    return steps.instead(steps("Add", logarithm, peak))


def _along_data(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Along axes that are data: the elements in another order, with these axes last, as rows."""
    rank = graph.rank(node.input[0])
    shape = graph.shape(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    if axes_of(node, graph) is not None or rank is None or shape is None:
        return None
    steps, x = Steps(graph, node), node.input[0]
    dtype, keeps = graph.dtype(x), attributes(node).get("keepdims", 1)
    sizes, numbers = steps("Shape", x), np.arange(rank)
    axes = steps("Mod", steps("Add", steps.cast(node.input[1], np.int64), rank), rank)
    meets = steps.cast(steps("Equal", axes, numbers[:, None]), np.int64)
    is_reduced = steps("Min", steps.over("ReduceSum", meets, [1], keepdims=0), 1)
    keyed = steps("Add", steps("Mul", is_reduced, rank), numbers)
    ordered = steps.results(2, "TopK", keyed, [rank], largest=0)[0]
    order = steps("Mod", ordered, rank)
    rows = kept = steps("Where", steps.cast(is_reduced, np.bool_), 1, sizes)
    if not keeps:
        kept = steps("Gather", sizes, steps("Slice", order, [0], [rank - shape[0]]))
    if 0 in (graph.dims(x) or []) and dtype is not None:
        return steps.instead(steps("ConstantOfShape", kept, value=_tensor(node.op_type, dtype)))
    moved = steps("Gather", steps("Reshape", x, [-1]), _places(steps, x, sizes, order, rank))
    rows = steps("Concat", steps("ReduceProd", rows, keepdims=1), [-1], axis=0)
    reduced = steps.over(node.op_type, steps("Reshape", moved, rows), [1], keepdims=0)
    return steps.instead(steps("Reshape", reduced, kept))


def _places(steps: Steps, x: str, sizes: str, order: str, rank: int) -> str:
    """Where in the elements of x in a row those of its transpose lie, in their order."""
    old = [steps("Gather", sizes, [n]) for n in range(rank)]
    strides = [steps.constant([1])]
    for size in old[:0:-1]:
        strides.insert(0, steps("Mul", strides[0], size))
    moved_sizes = steps("Gather", sizes, order)
    moved_strides = steps("Gather", steps("Concat", *strides, axis=0), order)
    rest = steps("Range", 0, steps("Size", x), 1)
    places = steps("Mul", rest, 0)
    for n in reversed(range(rank)):
        size, stride = (steps("Gather", part, [n]) for part in (moved_sizes, moved_strides))
        places = steps("Add", places, steps("Mul", steps("Mod", rest, size), stride))
        rest = steps("Div", rest, size)
    return places


def _axes_as_attribute(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """0.17's frontend takes the first of the axes that are an input, and leaves the others."""
    if not IS_RELAY or len(node.input) < 2 or not node.input[1]:
        return None
    axes = graph.constant(node.input[1])
    if axes is None:
        return None  # which the frontend refuses
    given = attributes(node)
    if not axes.size and given.pop("noop_with_empty_axes", 0):
        return [remade(node, "Identity", node.input[:1], {})]
    given.pop("noop_with_empty_axes", None)
    if axes.size:
        given["axes"] = [int(axis) for axis in axes]
    return [remade(node, inputs=node.input[:1], attributes=given)]


REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in (
        "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare",
    )
)  # fmt: skip
FORMS = dict.fromkeys(REDUCTIONS, _reduction)
