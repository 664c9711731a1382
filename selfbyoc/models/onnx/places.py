"""Forms of ops that take places in an axis: counted from the end, one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .checks import IS_RELAY
from .graph import Graph, attributes, remade
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _from_the_end(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """0.17's frontend does not count negative places from the end."""
    data, places = graph.shape(node.input[0]), graph.shape(node.input[1])
    if not IS_RELAY or data is None or places is None:
        return None
    batch, steps = attributes(node).get("batch_dims", 0), Steps(graph, node)
    dtype = graph.dtype(node.input[1]) or np.dtype("int64")
    counts, given = np.asarray(data[batch : batch + places[-1]], dtype), node.input[1]
    below = steps("Less", given, np.asarray(0, dtype))
    found = steps("Where", below, steps("Add", given, counts), given)
    return [*steps.nodes, remade(node, inputs=[node.input[0], found, *node.input[2:]])]


def _axis_as_it_is(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """0.17's frontend adds the extent of another axis to a negative place, where the axis itself is
    counted from the end.
    """
    axis, rank = attributes(node).get("axis", 0), graph.rank(node.input[0])
    if not IS_RELAY or rank is None or axis >= 0:
        return None
    steps = Steps(graph, node)
    return steps.instead(steps("Gather", *node.input, axis=axis + rank))


def _overlapping(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """TVM drops boxes that overlap as much as the threshold, ONNX those that overlap more."""
    given = graph.constant(node.input[3]) if len(node.input) > 3 and node.input[3] else None
    if given is None or given.dtype != np.float32:
        return None
    more = graph.add(np.nextafter(given, np.float32(np.inf)))
    return [remade(node, inputs=[*node.input[:3], more, *node.input[4:]])]


FORMS = {
    "Gather": _axis_as_it_is, "GatherND": _from_the_end, "NonMaxSuppression": _overlapping,
    "ScatterND": _from_the_end,
}  # fmt: skip
