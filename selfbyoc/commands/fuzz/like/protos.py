"""ONNX models under change: what nobody reads goes, types follow anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....common.optional import extra
from ....models.onnx.graph import Graph, Message, attributes, nodes
from ....models.onnx.inference import apart, inferred, may_end

if TYPE_CHECKING:
    import onnx
    import onnxruntime

LARGEST = 1 << 21  # elements of a value: nothing larger is built


def session(model: bytes) -> onnxruntime.InferenceSession:
    """ONNX Runtime's, with nothing optimised. Raises what it raises, and Ended where that ends a
    process.
    """
    if may_end(extra("onnx").ModelProto.FromString(model)):
        apart(partial(_tried, model))
    return _session(model)


def _tried(model: bytes) -> str:
    try:
        _session(model)
    except Exception:  # its own classes, one for each reason: it is met again
        return ""
    return ""


def _session(model: bytes) -> onnxruntime.InferenceSession:
    runtime = extra("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """The values that a node reads, those of its branches and loops from outside included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            own = {v.name for v in (*inner.input, *inner.initializer)}
            own |= {name for each in nodes(inner) for name in each.output}
            found = [name for each in inner.node for name in reads(each)]
            yield from (name for name in found if name not in own)
            yield from (v.name for v in inner.output if v.name not in own)


def constant(node: onnx.NodeProto) -> np.ndarray | None:
    """What a node Constant holds, if that is numbers."""
    value = extra("onnx").helper.get_attribute_value(node.attribute[0])
    name = node.attribute[0].name
    if name == "value":
        return np.asarray(extra("onnx").numpy_helper.to_array(value))
    dtypes = {"value_float": "f4", "value_floats": "f4", "value_int": "i8", "value_ints": "i8"}
    return np.asarray(value, dtypes[name]) if name in dtypes else None


def replace_all(field: Any, values: Sequence[Message]) -> None:
    """Other messages in a repeated field; they may be some of its own."""
    copies = [type(value).FromString(value.SerializeToString()) for value in values]
    del field[:]
    field.extend(copies)


def tidy(model: onnx.ModelProto) -> None:
    """Drop nodes that no output needs, and constants and inputs that nobody reads."""
    graph = model.graph
    needed = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(reads(node))
    replace_all(graph.node, kept[::-1])
    replace_all(graph.initializer, [t for t in graph.initializer if t.name in needed])
    read = {name for node in graph.node for name in reads(node)}
    replace_all(graph.input, [v for v in graph.input if v.name in read])


def typed(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model with the types that follow from its inputs; None where ONNX's own checks refuse
    it, or a value is too large.
    """
    onnx = extra("onnx")
    for value in model.graph.output:
        value.ClearField("type")
    del model.graph.value_info[:]
    try:
        # Not that it was, but what it comes from: thousands are drawn, and a fork each is too much.
        done = inferred(model, is_opened=True, strict_mode=True, data_prop=True)
        onnx.checker.check_model(done)
    except Exception:  # of many kinds: InferenceError, ValidationError, RuntimeError, ValueError
        return None
    graph = done.graph
    if not (graph.node and graph.input and graph.output):
        return None
    values = (*graph.input, *graph.value_info, *graph.output)
    is_usual = all(map(_is_usual, values)) and _windows_fit(Graph(done))
    return done if is_usual else None


def _is_usual(value: onnx.ValueInfoProto) -> bool:
    tensor = value.type.tensor_type
    sizes = [d.dim_value for d in tensor.shape.dim if d.HasField("dim_value")]
    return bool(tensor.elem_type) and 0 not in sizes and np.prod(sizes, dtype=float) <= LARGEST


def _windows_fit(graph: Graph) -> bool:
    """Whether each window lies in its image, padding included: of others ONNX does not say what
    there is. ONNX Runtime has one place for a window of two in an image of one, TVM has none.
    """
    return all(_fits(node, graph) for node in graph.graph.node if node.op_type in _WINDOWS)


_WINDOWS = ("AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool")


def _fits(node: onnx.NodeProto, graph: Graph) -> bool:
    given, image = attributes(node), graph.image(node.input[0])
    is_padded = given.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    weight = graph.shape(node.input[1]) if len(node.input) > 1 else None
    kernel = given.get("kernel_shape") or (weight[2:] if weight else None)
    if image is None or kernel is None or is_padded:
        return True
    n = len(kernel)
    pads, steps = given.get("pads", [0] * 2 * n), given.get("dilations", [1] * n)
    extents = zip(image, kernel, steps, pads[:n], pads[n:], strict=True)
    return all(size + a + b > (k - 1) * step for size, k, step, a, b in extents)
