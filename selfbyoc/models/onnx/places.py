"""Forms of ops that take places in an axis: counted from the end, one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from .checks import IS_RELAY
from .graph import Graph, attributes, remade, where
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


def _suppressed(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A NonMaxSuppression as 0.17 means it: with ONNX's defaults; boxes that overlap as much as the
    threshold are dropped, where ONNX drops those that overlap more; a number of boxes has 32 bits,
    and 0 of them is all.
    """
    if not IS_RELAY:
        return None
    named = (node.input[n] if n < len(node.input) else "" for n in range(5))
    boxes, scores, most, overlap, least = named
    steps = Steps(graph, node)
    most = _few_boxes(steps, most) if most else steps.constant([0])
    scores, least = _ranked(steps, scores, least)
    known = graph.constant(most)
    if known is None:
        has_some = steps("Greater", most, 0)
        least = steps("Where", has_some, least, np.float32(np.inf))
    elif not known.any():
        least = steps.constant([np.inf], np.float32)
    inputs = [boxes, scores, most, _next_float(steps, overlap), least]
    return [*steps.nodes, remade(node, inputs=inputs)]


def _ranked(steps: Steps, scores: str, least: str) -> tuple[str, str]:
    """Scores above 0 in the same order, and what those of boxes that count are more than: in TVM a
    score below 0 marks a box that was dropped. Raises InputError where that takes their number.
    """
    known, shape = steps.graph.constant(least) if least else None, steps.graph.shape(scores)
    if known is not None and (known >= 0).all():
        return scores, least
    if shape is None:
        name = where(steps.node.op_type, steps.node.name)
        text = "score_threshold: expected a constant of 0 or more for an open number of boxes"
        raise InputError(f"{name}: {text}, found {'none' if known is None else known.item()}")
    count = shape[-1]
    _, order = steps.results(2, "TopK", scores, [count], axis=-1)
    _, place = steps.results(2, "TopK", steps("Neg", order), [count], axis=-1)
    rank = steps.cast(steps("Sub", np.int64(count), place), np.float32)
    if least:
        rank = steps("Where", steps("Greater", scores, least), rank, np.float32(0))
    return rank, steps.constant([0], np.float32)


def _few_boxes(steps: Steps, most: str) -> str:
    """A number of boxes that 32 bits hold, of 0 or more."""
    known, largest = steps.graph.constant(most), 2**31 - 1
    if known is not None:
        return steps.constant(np.clip(known, 0, largest).astype(np.int64))
    return steps("Max", steps("Min", most, largest), 0)


def _next_float(steps: Steps, threshold: str) -> str:
    """The least float32 that is more than a threshold of 0 or more; without one, than 0."""
    known = steps.graph.constant(threshold) if threshold else np.zeros(1, np.float32)
    if known is not None:
        return steps.constant(np.nextafter(known.astype(np.float32), np.float32(np.inf)))
    # A bit more than half of the last bit, which rounds to all of it; of 0 it is nothing.
    little = steps("Mul", threshold, np.float32(2**-24 * (1 + 2**-10)))
    least = np.finfo(np.float32).tiny
    return steps("Max", steps("Add", threshold, little), least)


FORMS = {
    "Gather": _axis_as_it_is, "GatherND": _from_the_end, "NonMaxSuppression": _suppressed,
    "ScatterND": _from_the_end,
}  # fmt: skip
