"""Forms of Fourier transforms: products with the matrix of their waves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .claims import check_room
from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _transform(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A DFT along an axis that is known, or that is data, of as many elements as are known."""
    shape, dtype, given = graph.dims(node.input[0]), graph.dtype(node.input[0]), attributes(node)
    length = _known(node, 1, graph)
    if (
        not shape
        or shape[-1] is None
        or dtype is None
        or (length is None and len(node.input) > 1 and node.input[1])
    ):
        return None
    steps, is_input = Steps(graph, node), len(node.input) > 2 and node.input[2]
    axis = _known(node, 2, graph) if is_input else given.get("axis", -2 if graph.opset > 19 else 1)
    if axis is not None:
        if shape[axis % len(shape)] is None:
            return None  # as many waves as there are elements
        return steps.instead(_along(steps, node, shape, axis % len(shape), length, dtype))
    if length is not None or given.get("onesided", 0) or None in shape:
        return None  # the axis decides about the shape
    found, wanted = "", steps("Mod", steps.cast(node.input[2], np.int64), len(shape))
    for n in range(len(shape) - 1):
        each = _along(steps, node, shape, n, None, dtype)
        found = steps("Where", steps("Equal", wanted, np.int64(n)), each, found) if found else each
    return steps.instead(found)


def _known(node: onnx.NodeProto, place: int, graph: Graph) -> int | None:
    if len(node.input) <= place or not node.input[place]:
        return None
    value = graph.constant(node.input[place])
    return None if value is None else int(value.reshape(-1)[0])


def _along(
    steps: Steps,
    node: onnx.NodeProto,
    shape: Sequence[int | None],
    axis: int,
    length: int | None,
    dtype: np.dtype,
) -> str:
    """x, its axis last but one, times waves of cosines and sines."""
    given = attributes(node)
    is_inverse, is_half = given.get("inverse", 0), given.get("onesided", 0)
    back = is_half and is_inverse  # from half of the waves to real numbers
    given_count, last = shape[axis] or 0, shape[-1] or 0
    count = length or ((given_count - 1) * 2 if back else given_count)
    kept = count // 2 + 1 if is_half and not is_inverse else count
    read = min(given_count, count // 2 + 1 if back else count)
    check_room(node, read, kept)
    angles = 2 * np.pi * np.outer(np.arange(read), np.arange(kept)) / count
    angles = angles if is_inverse else -angles
    factor = np.full((read, 1), 1.0 / count if is_inverse else 1.0)
    if back:  # the other half are their mirror images
        middle = np.arange(read)
        factor[(middle > 0) & (2 * middle != count)] *= 2
    cos, sin = (factor * wave(angles) for wave in (np.cos, np.sin))
    x, rank = node.input[0], len(shape)
    order = [n for n in range(rank - 1) if n != axis] + [rank - 1, axis]
    moved = steps("Transpose", x, perm=order)
    if read < given_count:
        moved = steps("Slice", moved, [0], [read], [rank - 1])
    parts = [steps("Slice", moved, [n], [n + 1], [rank - 2]) for n in range(last)]
    waves = [np.asarray(each, dtype) for each in (cos, sin)]
    results = [steps("MatMul", parts[0], wave) for wave in waves[: 1 if back else 2]]
    if len(parts) > 1:
        other = [steps("MatMul", parts[1], wave) for wave in waves]
        results[0] = steps("Sub", results[0], other[1])
        results[1:] = [] if back else [steps("Add", results[1], other[0])]
    joined = steps("Concat", *results, axis=rank - 2) if len(results) > 1 else results[0]
    return steps("Transpose", joined, perm=[int(n) for n in np.argsort(order)])


def _frames(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """An STFT of steps and lengths that are known: frames, and the transform of each."""
    shape, dtype = graph.dims(node.input[0]), graph.dtype(node.input[0])
    step = _known(node, 1, graph)
    window = node.input[2] if len(node.input) > 2 else ""
    size = _known(node, 3, graph) or ((graph.shape(window) or [None])[0] if window else None)
    if not shape or dtype is None or step is None or size is None or shape[1] is None:
        return None
    steps, half = Steps(graph, node), attributes(node).get("onesided", 1)
    signal, is_flat = node.input[0], len(shape) == 2  # ONNX Runtime takes one of two axes, too
    if not is_flat and shape[-1] != 1 and (half or shape[-1] is None):
        return None
    if is_flat:
        signal = steps.over("Unsqueeze", signal, [2])
    check_room(node, (shape[1] - size) // max(step, 1) + 1, size)
    places = step * np.arange((shape[1] - size) // step + 1)[:, None] + np.arange(size)
    frames = steps("Gather", signal, places, axis=1)
    if window:
        frames = steps("Mul", frames, steps("Reshape", window, [-1, 1]))
    if graph.opset > 19:
        return steps.instead(steps("DFT", frames, "", np.int64(2), onesided=half))
    return steps.instead(steps("DFT", frames, axis=2, onesided=half))


FORMS = {"DFT": _transform, "STFT": _frames}
