"""Ops of levels as ONNX and ONNX Runtime (com.microsoft) have them in one node each: dequantised,
computed, quantised, as kernels of levels read it (docs/int8.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .graph import Graph, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx

Nodes = Sequence["onnx.NodeProto"] | None
_AXES_SINCE = 13  # the opset from which on scales lie along an axis


def _floats(steps: Steps, x: str, scale: str, zero: str, axis: int | None = None) -> str:
    """A tensor of levels as floats; without a zero point that is 0."""
    scale, zero = _number(steps, scale), _number(steps, zero)
    more = {} if axis is None or _is_one(steps.graph, scale) else {"axis": axis}
    return steps("DequantizeLinear", x, scale, *filter(None, [zero]), **more)


def _levels(steps: Steps, y: str, scale: str, zero: str, like: str) -> str:
    """Floats as levels; without a zero point those of 0 in the dtype of an input."""
    dtype = steps.graph.dtype(like)
    if not zero and dtype is not None:
        zero = steps.constant(np.zeros((), dtype))
    scale, zero = _number(steps, scale), _number(steps, zero)
    return steps("QuantizeLinear", y, scale, *filter(None, [zero]))


def _number(steps: Steps, name: str) -> str:
    """A vector of one element as a number, which 0.17 takes for one along an axis."""
    if not name or steps.graph.shape(name) != (1,):
        return name
    value = steps.graph.constant(name)
    empty = np.zeros(0, np.int64)
    return steps("Reshape", name, empty) if value is None else steps.constant(value.reshape(()))


def _is_one(graph: Graph, name: str) -> bool:
    return graph.shape(name) in ((), (1,))


def _given(node: onnx.NodeProto, count: int) -> list[str]:
    return [*node.input, *[""] * count][:count]


def _bias(steps: Steps, bias: str, x_scale: str, w_scale: str) -> str:
    """int32 in the scale of the products; computed now where all of it is constant."""
    values = [steps.graph.constant(name) for name in (bias, x_scale, w_scale)]
    if any(v is None for v in values):
        wide = steps.cast(bias, np.float32)
        return steps("Mul", wide, steps("Mul", x_scale, w_scale))
    levels, left, right = (np.asarray(v) for v in values)
    return steps.constant(levels.astype(np.float32) * (left * right).astype(np.float32))


def _conv(node: onnx.NodeProto, graph: Graph) -> Nodes:
    x, xs, xz, w, ws, wz, ys, yz, bias = _given(node, 9)
    if graph.opset < _AXES_SINCE and not _is_one(graph, ws):
        return None
    steps = Steps(graph, node)
    inputs = [_floats(steps, x, xs, xz), _floats(steps, w, ws, wz, 0)]
    if bias:
        inputs.append(_bias(steps, bias, xs, ws))
    y = steps("Conv", *inputs, **attributes(node))
    return steps.instead(_levels(steps, y, ys, yz, x))


def _matmul(node: onnx.NodeProto, graph: Graph) -> Nodes:
    a, a_scale, az, b, bs, bz, ys, yz = _given(node, 8)
    rank = graph.rank(b)
    several = not (_is_one(graph, a_scale) and _is_one(graph, bs))
    if several and (graph.opset < _AXES_SINCE or rank is None or not _is_one(graph, a_scale)):
        return None  # scales of rows
    steps = Steps(graph, node)
    axis = None if rank is None else rank - 1
    y = steps("MatMul", _floats(steps, a, a_scale, az), _floats(steps, b, bs, bz, axis))
    return steps.instead(_levels(steps, y, ys, yz, a))


def _gemm(node: onnx.NodeProto, graph: Graph) -> Nodes:
    a, a_scale, az, b, bs, bz, bias, ys, yz = _given(node, 9)
    given = attributes(node)
    turned = given.get("transB", 0)
    if graph.opset < _AXES_SINCE and not _is_one(graph, bs):
        return None
    steps = Steps(graph, node)
    inputs = [_floats(steps, a, a_scale, az), _floats(steps, b, bs, bz, 1 - turned)]
    if bias:
        inputs.append(_bias(steps, bias, a_scale, bs))
    y = steps("Gemm", *inputs, alpha=1.0, transA=given.get("transA", 0), transB=turned)
    if given.get("alpha", 1.0) != 1.0:  # of the bias, too: its scale is that of the products
        y = steps("Mul", y, np.float32(given["alpha"]))
    return steps.instead(_levels(steps, y, ys, yz, a) if ys else y)


def _of_two(op: str) -> Callable[[onnx.NodeProto, Graph], Nodes]:
    def form(node: onnx.NodeProto, graph: Graph) -> Nodes:
        a, a_scale, az, b, bs, bz, ys, yz = _given(node, 8)
        steps = Steps(graph, node)
        y = steps(op, _floats(steps, a, a_scale, az), _floats(steps, b, bs, bz))
        return steps.instead(_levels(steps, y, ys, yz, a))

    return form


def _of_one(op: str, *kept: str) -> Callable[[onnx.NodeProto, Graph], Nodes]:
    def form(node: onnx.NodeProto, graph: Graph) -> Nodes:
        x, xs, xz, ys, yz = _given(node, 5)
        given = attributes(node)
        if given.get("channels_last", 0):
            return None
        steps = Steps(graph, node)
        more = {name: value for name, value in given.items() if name in kept}
        y = steps(op, _floats(steps, x, xs, xz), **more)
        return steps.instead(_levels(steps, y, ys, yz, x))

    return form


def _global_mean(node: onnx.NodeProto, graph: Graph) -> Nodes:
    """Over the pixels, whose axes stay; channels may come last."""
    x, xs, xz, ys, yz = _given(node, 5)
    rank = graph.rank(x)
    if not attributes(node).get("channels_last", 0):
        return _of_one("GlobalAveragePool")(node, graph)
    if rank is None:
        return None
    steps = Steps(graph, node)
    y = steps.over("ReduceMean", _floats(steps, x, xs, xz), [*range(1, rank - 1)], keepdims=1)
    return steps.instead(_levels(steps, y, ys, yz, x))


def _softmax(node: onnx.NodeProto, graph: Graph) -> Nodes:
    """ONNX's of the opset that the node names: before 13 it is over all axes from one on."""
    is_new = attributes(node).get("opset", 13) >= _AXES_SINCE
    if is_new != (graph.opset >= _AXES_SINCE):
        return None
    return _of_one("Softmax", "axis")(node, graph)


def _concat(node: onnx.NodeProto, graph: Graph) -> Nodes:
    ys, yz, *rest = node.input
    steps = Steps(graph, node)
    parts = [_floats(steps, *rest[n : n + 3]) for n in range(0, len(rest), 3)]
    y = steps("Concat", *parts, axis=attributes(node)["axis"])
    return steps.instead(_levels(steps, y, ys, yz, rest[0]))


def _to_float(node: onnx.NodeProto, graph: Graph) -> Nodes:
    """MatMulIntegerToFloat: levels by levels, a float result."""
    a, b, a_scale, bs, az, bz, bias = _given(node, 7)
    rank = graph.rank(b)
    if rank is None or not _is_one(graph, a_scale):
        return None
    if graph.opset < _AXES_SINCE and not _is_one(graph, bs):
        return None
    steps = Steps(graph, node)
    y = steps("MatMul", _floats(steps, a, a_scale, az), _floats(steps, b, bs, bz, rank - 1))
    return steps.instead(steps("Add", y, bias) if bias else y)


def _dynamic(node: onnx.NodeProto, graph: Graph) -> Nodes:
    """DynamicQuantizeMatMul: floats, quantised by their range, by levels."""
    x, b, bs, bz, bias = _given(node, 5)
    rank = graph.rank(b)
    if rank is None or (graph.opset < _AXES_SINCE and not _is_one(graph, bs)):
        return None
    steps = Steps(graph, node)
    levels, scale, zero = steps.results(3, "DynamicQuantizeLinear", x)
    y = steps("MatMul", _floats(steps, levels, scale, zero), _floats(steps, b, bs, bz, rank - 1))
    return steps.instead(steps("Add", y, bias) if bias else y)


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_OF_RUNTIME: dict[str, Callable[[Any, Graph], Nodes]] = {
    "DynamicQuantizeMatMul": _dynamic, "MatMulIntegerToFloat": _to_float, "QGemm": _gemm,
    "QLinearAdd": _of_two("Add"), "QLinearAveragePool": _of_one("AveragePool", *_POOL),
    "QLinearConcat": _concat, "QLinearGlobalAveragePool": _global_mean,
    "QLinearLeakyRelu": _of_one("LeakyRelu", "alpha"), "QLinearMul": _of_two("Mul"),
    "QLinearSigmoid": _of_one("Sigmoid"), "QLinearSoftmax": _softmax,
}  # fmt: skip
FORMS = {f"com.microsoft.{op}": form for op, form in _OF_RUNTIME.items()}
FORMS |= {"QLinearConv": _conv, "QLinearMatMul": _matmul}
