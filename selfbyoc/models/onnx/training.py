"""Forms of ops that know of training: a norm of the batch's own mean, a mask of what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx

_MASK_IS_BOOL = 12  # since this opset, and all of it is true where nothing is dropped


def _batch_norm(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    x, scale, bias, mean, var = node.input
    given, rank, dtype = attributes(node), graph.rank(x), graph.dtype(x)
    if not given.get("training_mode", 0) or rank is None or dtype is None:
        return None
    steps, axes, column = Steps(graph, node), [0, *range(2, rank)], [-1, *[1] * (rank - 2)]
    average = steps.over("ReduceMean", x, axes, keepdims=1)
    centred = steps("Sub", x, average)
    spread = steps.over("ReduceMean", steps("Mul", centred, centred), axes, keepdims=1)
    root = steps("Sqrt", steps("Add", spread, np.asarray(given.get("epsilon", 1e-5), dtype)))
    scaled = steps("Mul", steps("Div", centred, root), steps("Reshape", scale, column))
    results = [steps("Add", scaled, steps("Reshape", bias, column))]
    kept = given.get("momentum", 0.9)
    for old, new in ((mean, average), (var, spread)):
        known = graph.dtype(old) or dtype
        flat = steps.cast(steps("Reshape", new, [-1]), known)
        parts = (steps("Mul", old, np.asarray(kept, known)),
                 steps("Mul", flat, np.asarray(1 - kept, known)))  # fmt: skip
        results.append(steps("Add", *parts))
    return steps.instead(*results)


def _mask(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A Dropout that drops nothing, and says so."""
    used = len(node.output) > 1 and node.output[1] in graph.read
    training = graph.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else False
    if not used or graph.opset < _MASK_IS_BOOL or training is None or np.any(training):
        return None
    steps, x = Steps(graph, node), node.input[0]
    kept = steps("Identity", x)
    return steps.instead(kept, steps("Expand", np.asarray(True), steps("Shape", x)))


FORMS = {"BatchNormalization": _batch_norm, "Dropout": _mask}
