"""Forms of ops that take parts of an axis: split, or its largest elements, where how many is data,
or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .claims import check_room
from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _split(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """As slices, where the sizes are data, or a part has none."""
    given = attributes(node)
    name = node.input[1] if len(node.input) > 1 else ""
    sizes = given.get("split") if not name else graph.constant(name)
    if (sizes is not None and 0 not in list(sizes)) or (sizes is None and not name):
        return None
    steps, x, axis = Steps(graph, node), node.input[0], given.get("axis", 0)
    lengths = steps.constant(np.asarray(sizes, np.int64)) if sizes is not None else name
    begin, found = steps.constant([0]), []
    for n in range(len(node.output)):
        end = steps("Add", begin, steps("Gather", lengths, [n]))
        found.append(steps("Slice", x, begin, end, [axis]))
        begin = end
    return steps.instead(*found)


def _largest(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A TopK of how many is data: all of them in order, and then the first of these."""
    shape, given = graph.shape(node.input[0]), attributes(node)
    if len(node.input) < 2 or graph.constant(node.input[1]) is not None or shape is None:
        return None
    steps, axis = Steps(graph, node), given.get("axis", -1) % len(shape)
    ordered = steps.results(2, "TopK", node.input[0], [shape[axis]], **given)
    ends = steps("Reshape", node.input[1], [1])
    return steps.instead(*(steps("Slice", each, [0], ends, [axis]) for each in ordered))


def _one_hot(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Compared with all numbers below the depth, which may be data."""
    rank, kind = graph.rank(node.input[0]), graph.dtype(node.input[2])
    if rank is None or kind is None:
        return None
    steps, axis = Steps(graph, node), attributes(node).get("axis", -1) % (rank + 1)
    depth = steps("Reshape", steps.cast(node.input[1], np.int64), [])
    places = steps.cast(node.input[0], np.int64)
    places = steps("Where", steps("Less", places, 0), steps("Add", places, depth), places)
    column = steps(
        "Reshape", steps("Range", np.int64(0), depth, np.int64(1)), [-1, *[1] * (rank - axis)]
    )
    is_it = steps("Equal", steps.over("Unsqueeze", places, [axis]), column)
    off, on = (steps("Gather", node.input[2], np.int64(n)) for n in (0, 1))
    return steps.instead(steps("Where", is_it, on, off))


def _eye(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A constant, where the shape is known."""
    shape, given = graph.shape(node.input[0]), attributes(node)
    number = given.get("dtype", graph.dtype_number(node.input[0]))
    if shape is None or not number:
        return None
    steps = Steps(graph, node)
    check_room(node, *shape)
    eye = steps.constant(np.eye(shape[0], shape[1], given.get("k", 0), np.float32))
    return steps.instead(steps("Cast", eye, to=number))


def _has_element(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Of nothing, or of a tensor."""
    if node.input and node.input[0] and graph.rank(node.input[0]) is None:
        return None
    steps = Steps(graph, node)
    return steps.instead(steps("Identity", np.asarray(bool(node.input and node.input[0]))))


FORMS = {
    "EyeLike": _eye, "OneHot": _one_hot, "OptionalHasElement": _has_element, "Split": _split,
    "TopK": _largest,
}  # fmt: skip
