"""Forms of ops that count the places of an axis, where what they count from is data: pads,
diagonals, lengths, the axis itself. Rows at computed places stand for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .checks import IS_RELAY
from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _padded(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """By pads that are data, or a value that is."""
    if len(node.input) < 2 or all(not n or _is_known(n, graph) for n in node.input[1:]):
        return None
    x, rank, dtype = node.input[0], graph.rank(node.input[0]), graph.dtype(node.input[0])
    if rank is None or dtype is None:
        return None
    steps, mode = Steps(graph, node), attributes(node).get("mode", b"constant")
    given = node.input[2] if len(node.input) > 2 and node.input[2] else np.zeros((), dtype)
    value = steps("Reshape", given, [1] * rank)
    shape, pads = steps("Shape", x), _of_all_axes(steps, node, rank)
    for axis in range(rank):
        size = steps("Gather", shape, [axis])
        before, after = (steps("Gather", pads, [n], axis=1) for n in (axis, axis + rank))
        before, after = (steps("Reshape", each, [1]) for each in (before, after))
        x = _along(steps, x, axis, (size, before, after), mode, value, rank)
    return steps.instead(x)


def _of_all_axes(steps: Steps, node: onnx.NodeProto, rank: int) -> str:
    """The pads before each axis, then those after each, of 0 where an axis has none; as a row."""
    pads = steps.cast(node.input[1], np.int64)
    if len(node.input) < 4 or not node.input[3]:
        return steps("Reshape", pads, [1, -1])
    axes = steps("Mod", steps.cast(node.input[3], np.int64), rank)
    meets = steps("Equal", steps.over("Unsqueeze", axes, [1]), np.arange(rank))
    parts = steps("Reshape", pads, [2, 1, -1])
    found = steps("MatMul", *(steps.cast(each, np.float32) for each in (parts, meets)))
    return steps("Reshape", steps.cast(found, np.int64), [1, -1])


def _is_known(name: str, graph: Graph) -> bool:
    return graph.constant(name) is not None


def _along(
    steps: Steps, x: str, axis: int, sizes: Sequence[str], mode: bytes, value: str, rank: int
) -> str:
    """One axis padded; `sizes` are its size, and what comes before it and after it."""
    size, before, after = sizes
    begin = steps("Neg", before)
    ends = (_scalar(steps, each) for each in (begin, steps("Add", size, after)))
    places = steps("Range", *ends, np.int64(1))
    last = steps("Sub", size, 1)
    inside = steps("Max", steps("Min", places, last), 0)
    if mode == b"wrap":
        inside = steps("Mod", places, size)
    elif mode == b"reflect":
        period = steps("Max", steps("Mul", last, 2), 1)
        turned = steps("Mod", places, period)
        inside = steps("Min", turned, steps("Sub", period, turned))
    padded = steps("Gather", x, inside, axis=axis)
    if mode != b"constant":
        return padded
    is_inside = steps("Equal", inside, places)
    column = steps("Reshape", is_inside, [-1, *[1] * (rank - 1 - axis)])
    return steps("Where", column, padded, value)


def _scalar(steps: Steps, x: str) -> str:
    return steps("Reshape", x, [])


def _triangle(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A Trilu from a diagonal that is data."""
    dtype = graph.dtype(node.input[0])
    if len(node.input) < 2 or not node.input[1] or _is_known(node.input[1], graph):
        return None
    if dtype is None:
        return None
    steps, x = Steps(graph, node), node.input[0]
    rows, columns = (_counted(steps, x, axis) for axis in (-2, -1))
    apart = steps("Sub", columns, steps.over("Unsqueeze", rows, [1]))
    limit = steps.cast(node.input[1], np.int64)
    is_upper = attributes(node).get("upper", 1)
    is_kept = steps("GreaterOrEqual" if is_upper else "LessOrEqual", apart, limit)
    return steps.instead(steps("Where", is_kept, x, np.zeros((), dtype)))


def _counted(steps: Steps, x: str, axis: int) -> str:
    """The numbers of the places of an axis."""
    size = steps("Gather", steps("Shape", x), np.int64(axis))
    return steps("Range", np.int64(0), size, np.int64(1))


def _reversed(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A ReverseSequence, its first elements in the other order: rows of batch and time."""
    rank, given, x = graph.rank(node.input[0]), attributes(node), node.input[0]
    if IS_RELAY or rank is None:
        return None
    steps, is_swapped = Steps(graph, node), given.get("batch_axis", 1) == 1
    order = [1, 0, *range(2, rank)]
    if is_swapped:
        x = steps("Transpose", x, perm=order)
    sizes = steps("Shape", x)
    batch, time = _counted(steps, x, 0), _counted(steps, x, 1)
    lengths = steps.over("Unsqueeze", steps.cast(node.input[1], np.int64), [1])
    turned = steps("Sub", steps("Sub", lengths, 1), time)
    places = steps("Where", steps("Less", time, lengths), turned, time)
    rows = steps("Mul", steps.over("Unsqueeze", batch, [1]), steps("Gather", sizes, [1]))
    flat = steps("Reshape", x, steps("Concat", [-1], steps("Slice", sizes, [2], [rank]), axis=0))
    found = steps("Gather", flat, steps("Add", places, rows), axis=0)
    return steps.instead(steps("Transpose", found, perm=order) if is_swapped else found)


def _along_data(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A sum of what came before along an axis that is data: along each, of which one counts."""
    rank, name = graph.rank(node.input[0]), node.input[1]
    if rank is None or _is_known(name, graph):
        return None
    steps, found = Steps(graph, node), ""
    axis = steps("Mod", steps.cast(name, np.int64), rank)
    for n in range(rank):
        sums = steps(node.op_type, node.input[0], np.asarray(n), **attributes(node))
        found = steps("Where", steps("Equal", axis, np.int64(n)), sums, found) if found else sums
    return steps.instead(found)


FORMS = {
    "CumProd": _along_data, "CumSum": _along_data, "Pad": _padded, "ReverseSequence": _reversed,
    "Trilu": _triangle,
}  # fmt: skip
