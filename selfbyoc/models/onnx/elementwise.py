"""Forms of elementwise ops: comparisons with infinity, GELU, limits that cross."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from .checks import IS_RELAY, infinities
from .graph import Graph, attributes, remade
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _one_infinity(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """IsInf of one sign: both frontends look for both."""
    signs, dtype = infinities(node), graph.dtype(node.input[0])
    if sum(signs) != 1 or dtype is None:
        return None
    infinity = graph.add(np.asarray(np.inf if signs[0] else -np.inf, dtype))
    return [remade(node, "Equal", [node.input[0], infinity], {})]


def _lowest(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """TVM's maximum of nothing but -inf is the lowest number, so -inf is what is no larger."""
    for n, value in enumerate(map(graph.constant, node.input)):
        if value is None or not is_float(value.dtype) or not (value == -np.inf).all():
            continue
        other = node.input[1 - n]
        dtype = graph.dtype(other) or value.dtype
        lowest = np.full(value.shape, limits(dtype).min, dtype)
        return [remade(node, "LessOrEqual", [other, graph.add(lowest)])]
    return None


def _gelu_by_tanh(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """0.17's frontend takes it for the exact one: the formula of ONNX instead."""
    if not IS_RELAY or attributes(node).get("approximate", b"none") == b"none":
        return None
    x, steps = node.input[0], Steps(graph, node)
    dtype = graph.dtype(x) or np.dtype("float32")
    root = math.sqrt(2 / math.pi)
    half, one, three = (np.asarray(v, dtype) for v in (0.5, root, root * 0.044715))
    factor = steps("Add", steps("Mul", steps("Mul", x, x), three), one)
    tanh = steps("Tanh", steps("Mul", factor, x))
    halved = steps("Mul", x, half)
    return steps.instead(steps("Add", halved, steps("Mul", halved, tanh)))


def _crossed(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A Clip whose lower limit is the higher one: 0.17 gives the lower, ONNX the upper limit."""
    given, (x, *inputs) = attributes(node), node.input
    low, high = (
        graph.constant(inputs[n]) if len(inputs) > n else given.get(key)
        for n, key in enumerate(("min", "max"))
    )
    if not IS_RELAY or low is None or high is None or not np.all(low > high):
        return None
    dtype, steps = graph.dtype(x) or np.dtype("float32"), Steps(graph, node)
    raised = steps("Max", x, np.asarray(low, dtype))
    return steps.instead(steps("Min", raised, np.asarray(high, dtype)))


def _plain(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """0.17's frontend knows nothing of how floats of 8 bits are rounded, and raises."""
    given = attributes(node)
    kept = {key: value for key, value in given.items() if key not in ("saturate", "round_mode")}
    return [remade(node, attributes=kept)] if IS_RELAY and kept != given else None


def _sampled(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Before opset 20 two modes of GridSample had other names, which 0.17's frontend knows."""
    given, names = attributes(node), {b"linear": "bilinear", b"cubic": "bicubic"}
    mode = names.get(given.get("mode", b"linear"))
    return [remade(node, attributes=given | {"mode": mode})] if IS_RELAY and mode else None


def _by_sigmoid(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    """ONNX Runtime's QuickGelu: x * sigmoid(alpha * x)."""
    x, steps = node.input[0], Steps(graph, node)
    alpha = np.asarray(attributes(node).get("alpha", 1.702), graph.dtype(x) or np.float32)
    return steps.instead(steps("Mul", x, steps("Sigmoid", steps("Mul", x, alpha))))


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is a float of 16 bits or more, bfloat16 too."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def limits(dtype: np.dtype) -> np.finfo:
    """What NumPy's finfo says, of bfloat16 too."""
    return np.finfo(dtype) if dtype.kind == "f" else import_module("ml_dtypes").finfo(dtype)


FORMS = {
    "Cast": _plain,
    "CastLike": _plain,
    "GridSample": _sampled,
    "Clip": _crossed,
    "Equal": _lowest,
    "Gelu": _gelu_by_tanh,
    "IsInf": _one_infinity,
    "com.microsoft.QuickGelu": _by_sigmoid,
}
