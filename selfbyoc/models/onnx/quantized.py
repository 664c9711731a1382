"""Forms of products of bytes, and of what makes bytes in blocks: by ONNX's formulas, in int32 and
floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .checks import IS_RELAY
from .few_bits import is_weight
from .graph import Graph, NodeAttrs, attributes
from .steps import Steps

if TYPE_CHECKING:
    import onnx


def _conv_integer(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    x, weight, *points = node.input
    rank = graph.rank(weight)
    if rank is None:
        return None
    steps = Steps(graph, node)
    at = [points[n] if len(points) > n else "" for n in (0, 1)]
    x = _centred(steps, x, at[0], "")
    weight = _centred(steps, weight, at[1], (-1, *[1] * (rank - 1)))
    return steps.instead(steps("Conv", x, weight, **attributes(node)))


def _bare_conv_integer(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """On Relay, whose frontend has a product of bytes: a kernel takes it where floats are made of
    it. Else it is one of int32, for TVM 0.17's own saturates on x86 without VNNI.
    """
    weights = (node.input[1], *node.input[3:])
    is_taken = all(graph.constant(name) is not None for name in weights if name)
    if not is_taken or not graph.is_cast_to_floats(node.output[0]):
        return _conv_integer(node, graph)
    return _of_one_row(node, graph) if graph.rank(node.input[1]) == 3 else None


def _of_one_row(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto]:
    """One of one axis as that of an image of one row: 0.17's frontend wants two axes."""
    steps, (x, weight, *points) = Steps(graph, node), node.input
    given = {name: _of_two_axes(name, value) for name, value in attributes(node).items()}
    row = steps.over("Unsqueeze", x, [2])
    taps = steps.constant(np.expand_dims(np.asarray(graph.constant(weight)), 2))
    y = steps("ConvInteger", row, taps, *points, **given)
    return steps.instead(steps.over("Squeeze", y, [2]))


def _of_two_axes(name: str, value: Any) -> Any:
    if name == "pads":
        return [0, value[0], 0, value[1]]
    return [1, *value] if name in ("dilations", "kernel_shape", "strides") else value


def _centred(steps: Steps, x: str, point: str, shape: str | Sequence[int] | None) -> str:
    """Less its zero point, as int32."""
    wide = steps.cast(x, np.int32)
    if not point:
        return wide
    zero = steps.cast(point, np.int32)
    is_scalar = not steps.graph.shape(point) or steps.graph.shape(point) == (1,)
    if shape:
        zero = steps("Reshape", zero, [1] if is_scalar else list(shape))
    return steps("Sub", wide, zero)


def _matmul_integer(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """With one zero point where those of the columns are alike. On Relay, whose frontend wants both
    sides of one sign: signed bytes as unsigned ones, each and its zero point 128 more.
    """
    steps = Steps(graph, node)
    a, b, a_point, b_point = (*node.input, "", "")[:4]
    zero = graph.constant(b_point) if b_point else None
    is_one = zero is not None and zero.ndim > 0 and zero.size and (zero == zero.flat[0]).all()
    if zero is not None and is_one:
        b_point = steps.constant(zero.flat[0])
    dtypes = [graph.dtype(a), graph.dtype(b)]
    if not IS_RELAY or None in dtypes or dtypes[0] == dtypes[1]:
        return steps.instead(steps("MatMulInteger", a, b, a_point, b_point)) if is_one else None
    inputs = []
    for x, point, dtype in zip((a, b), (a_point, b_point), dtypes, strict=True):
        point = point or steps.constant(np.zeros((), dtype))
        inputs.append([x, point] if dtype == np.uint8 else [_lifted(steps, v) for v in (x, point)])
    (a, a_point), (b, b_point) = inputs
    return steps.instead(steps("MatMulInteger", a, b, a_point, b_point))


def _lifted(steps: Steps, x: str) -> str:
    return steps.cast(steps("Add", steps.cast(x, np.int32), np.int32(128)), np.uint8)


def _with_point(
    node: onnx.NodeProto, graph: Graph, dtype: np.dtype | None
) -> Sequence[onnx.NodeProto] | None:
    """With a zero point, which 0.17 wants."""
    if not IS_RELAY or len(node.input) > 2 or dtype is None or dtype.kind not in "iu":
        return None
    steps = Steps(graph, node)
    given = {n: v for n, v in attributes(node).items() if n == "axis"}
    zero = np.zeros(graph.shape(node.input[1]) or (), dtype)
    return steps.instead(steps(node.op_type, *node.input, zero, **given))


def _dequantized(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """Of floats of 8 bits, or in blocks."""
    if is_weight(node, graph):
        return None  # a kernel's
    if found := _with_point(node, graph, graph.dtype(node.input[0])):
        return found
    dtype, given = graph.dtype(node.input[1]), attributes(node)
    is_narrow = graph.dtype_number(node.input[0]) in (17, 18, 19, 20)
    if dtype is None or not (is_narrow or given.get("block_size", 0)):
        return None
    steps, point = Steps(graph, node), node.input[2] if len(node.input) > 2 else ""
    spread = _spread(node, graph, steps)
    if spread is None:
        return None
    wide = steps.cast(node.input[0], np.float32)
    if point:
        wide = steps("Sub", wide, spread(steps.cast(point, np.float32)))
    found = steps("Mul", wide, spread(steps.cast(node.input[1], np.float32)))
    return steps.instead(found if dtype == np.float32 else steps.cast(found, dtype))


def _quantized(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """To floats of 8 bits, or in blocks."""
    given = attributes(node)
    byte = None if "output_dtype" in given else np.dtype("uint8")
    if found := _with_point(node, graph, byte):
        return found
    point = node.input[2] if len(node.input) > 2 else ""
    number = graph.dtype_number(point) if point else given.get("output_dtype", 2)
    if number not in (2, 3, 4, 5, 17, 18, 19, 20):
        return None
    if number < 17 and not given.get("block_size", 0):
        return None
    steps = Steps(graph, node)
    spread = _spread(node, graph, steps)
    if spread is None:
        return None
    scale = spread(steps.cast(node.input[1], np.float32))
    found = steps("Div", steps.cast(node.input[0], np.float32), scale)
    found = steps("Round", found) if number < 17 else found
    if point:
        found = steps("Add", found, spread(steps.cast(point, np.float32)))
    if number < 17:
        limits = np.iinfo({2: "uint8", 3: "int8", 4: "uint16", 5: "int16"}[number])
        found = steps("Clip", found, np.float32(limits.min), np.float32(limits.max))
    return steps.instead(steps("Cast", found, to=number, **_saturates(node)))


def _by_range(node: onnx.NodeProto, graph: Graph) -> Sequence[onnx.NodeProto] | None:
    """A scale of 1 where all is zero, as in ONNX Runtime: by none the next op would divide."""
    steps, x = Steps(graph, node), node.input[0]
    zero, most = np.float32(0), np.float32(255)
    low = steps("Min", steps("ReduceMin", x, keepdims=0), zero)
    high = steps("Max", steps("ReduceMax", x, keepdims=0), zero)
    scale = steps("Div", steps("Sub", high, low), most)
    scale = steps("Where", steps("Equal", scale, zero), np.float32(1), scale)
    point = steps("Clip", steps("Round", steps("Div", steps("Sub", zero, low), scale)), zero, most)
    if not IS_RELAY:  # whose frontend wants constants
        level = steps.cast(point, np.uint8)
        found = steps("QuantizeLinear", x, scale, level)
        return steps.instead(found, scale, steps("Identity", level))
    moved = steps("Add", steps("Round", steps("Div", x, scale)), point)
    found = steps("Clip", moved, zero, most)
    return steps.instead(steps.cast(found, np.uint8), scale, steps.cast(point, np.uint8))


def _saturates(node: onnx.NodeProto) -> NodeAttrs:
    given = attributes(node)
    return {"saturate": given["saturate"]} if "saturate" in given else {}


def _spread(node: onnx.NodeProto, graph: Graph, steps: Steps) -> Callable[[str], str] | None:
    """What gives each element its scale, or its zero point; None where shapes are not known."""
    shape, scales, given = graph.shape(node.input[0]), graph.shape(node.input[1]), attributes(node)
    if scales is None or shape is None:
        return None
    axis, block = given.get("axis", 1), given.get("block_size", 0)
    if block:
        axis %= len(shape)
        places = np.minimum(np.arange(shape[axis]) // block, scales[axis] - 1)
        return lambda name: steps("Gather", name, places, axis=axis)
    if len(scales) == 1 and scales != (1,):
        column = [-1, *[1] * (len(shape) - 1 - axis % len(shape))]
        return lambda name: steps("Reshape", name, column)
    return lambda name: name


FORMS = {
    "DequantizeLinear": _dequantized, "DynamicQuantizeLinear": _by_range,
    "MatMulInteger": _matmul_integer, "QuantizeLinear": _quantized,
    "ConvInteger": _bare_conv_integer if IS_RELAY else _conv_integer,
}  # fmt: skip
