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


def _are_several(graph: Graph, scale: str) -> bool:
    """Whether results have scales of their own, by rows, which no factor of columns holds."""
    return bool(scale) and graph.shape(scale) is not None and not _is_one(graph, scale)


def _are_equal(points: np.ndarray) -> bool:
    return points.size > 1 and bool((points == points.flat[0]).all())


def _needs_axes(graph: Graph, zero: str) -> bool:
    """Whether a weight's zero points lie along an axis, which this opset does not know."""
    points = graph.constant(zero) if zero else None
    is_known = not zero or _is_one(graph, zero) or (points is not None and _are_equal(points))
    return graph.opset < _AXES_SINCE and not is_known


def _given(node: onnx.NodeProto, count: int) -> list[str]:
    return [*node.input, *[""] * count][:count]


class _Product:
    """Of levels, as ONNX means it: a sum of integers (+ an int32 bias) by one factor, x_scale *
    w_scale / y_scale in float32, is the next level (simplify/combined_scales.py).
    """

    def __init__(self, steps: Steps, *scales: str, behind: int = 0) -> None:
        self.steps, self.scales, self.behind = steps, scales, behind

    def side(self, x: str, zero: str, axis: int | None = None) -> str:
        """What is multiplied, as integers."""
        points = self.steps.graph.constant(zero) if zero else None
        if points is not None and _are_equal(points):
            zero = self.steps.constant(points.flat[0])
        shape = self.steps.graph.shape(zero) if zero else ()
        one = self.steps.constant(np.ones(shape or (), np.float32))
        return _floats(self.steps, x, one, zero, axis)

    def bias(self, name: str) -> list[str]:
        """An int32 bias as integers; none of none."""
        value = self.steps.graph.constant(name) if name else None
        if value is not None:
            return [self.steps.constant(value.astype(np.float32))]
        return [self.steps.cast(name, np.float32)] if name else []

    def scaled(self, y: str, alpha: float = 1.0) -> str:
        """A sum in steps of the next levels, or as floats, where these have no scale."""
        names = [name for name in self.scales if name]
        known = [array for name in names if (array := self.steps.graph.constant(name)) is not None]
        shape = [-1, *[1] * self.behind]
        if len(known) == len(names):
            left, right, *after = known
            factor = np.float32(alpha) * left * right / (after[0] if after else np.float32(1))
            return self.steps("Mul", y, factor.reshape(shape if factor.size > 1 else ()))
        factor = self.steps("Mul", np.float32(alpha), names[0])
        for op, name in zip(("Mul", "Div"), names[1:], strict=False):
            factor = self.steps(op, factor, name)
        return self.steps("Mul", y, self.steps("Reshape", factor, shape) if self.behind else factor)

    def levels(self, y: str, zero: str, like: str, alpha: float = 1.0) -> str:
        """A sum as the next levels."""
        one = self.steps.constant(np.ones((), np.float32))
        return _levels(self.steps, self.scaled(y, alpha), one, zero, like)


def _conv(node: onnx.NodeProto, graph: Graph) -> Nodes:
    x, xs, xz, w, ws, wz, ys, yz, bias = _given(node, 9)
    rank = graph.rank(w)
    if (rank is None and not _is_one(graph, ws)) or _needs_axes(graph, wz):
        return None
    if _are_several(graph, ys):
        return None
    steps = Steps(graph, node)
    product = _Product(steps, xs, ws, ys, behind=(rank or 2) - 2)
    sides = product.side(x, xz), product.side(w, wz, 0)
    y = steps("Conv", *sides, *product.bias(bias), **attributes(node))
    return steps.instead(product.levels(y, yz, x))


def _matmul(node: onnx.NodeProto, graph: Graph) -> Nodes:
    a, a_scale, az, b, bs, bz, ys, yz = _given(node, 8)
    rank = graph.rank(b)
    if not _is_one(graph, a_scale) or (rank is None and not _is_one(graph, bs)):
        return None  # scales of rows
    if _are_several(graph, ys) or _needs_axes(graph, bz):
        return None
    steps = Steps(graph, node)
    product = _Product(steps, a_scale, bs, ys)
    y = steps(
        "MatMul", product.side(a, az), product.side(b, bz, None if rank is None else rank - 1)
    )
    return steps.instead(product.levels(y, yz, a))


def _gemm(node: onnx.NodeProto, graph: Graph) -> Nodes:
    a, a_scale, az, b, bs, bz, bias, ys, yz = _given(node, 9)
    given = attributes(node)
    turned = given.get("transB", 0)
    if _needs_axes(graph, bz) or _are_several(graph, ys):
        return None
    steps = Steps(graph, node)
    product = _Product(steps, a_scale, bs, ys)
    sides = product.side(a, az), product.side(b, bz, 1 - turned)
    more = {"alpha": 1.0, "transA": given.get("transA", 0), "transB": turned}
    y = steps("Gemm", *sides, *product.bias(bias), **more)
    alpha = given.get("alpha", 1.0)  # of the bias, too: its scale is that of the products
    return steps.instead(product.levels(y, yz, a, alpha) if ys else product.scaled(y, alpha))


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
