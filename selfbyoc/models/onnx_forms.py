"""What TVM's ONNX frontends read as something else than ONNX says: written so that they read it
right, or refused. Found with ONNX's own tests of its ops (docs/onnx.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..extra import extra
from .onnx_checks import IS_RELAY, infinities, why_not
from .onnx_graph import Graph, attributes, is_of_onnx, nodes
from .onnx_images import as_pads, output_shape, power_of_size, power_pool, resized
from .onnx_recurrent import with_layers


def readable(model: Any, name: str) -> Any:
    """The model in forms that TVM's frontend reads as ONNX means them; a new one if need be.

    Raises InputError for a node that it would read as something else, by name, op and reason: also
    for one that could not be written otherwise, in a branch or for want of a shape.
    """
    model = _rewritten(with_layers(model))
    graph = Graph(model)
    for node in nodes(model.graph):
        if reason := is_of_onnx(node) and why_not(node, graph):
            where = f"{node.op_type} {node.name!r}" if node.name else node.op_type
            text = f"TVM's ONNX frontend would compute something else: {reason}"
            raise InputError(f"{name}: {where}: {text}")
    return model


def _rewritten(model: Any) -> Any:
    if not any(is_of_onnx(node) and node.op_type in _REWRITES for node in model.graph.node):
        return model
    changed = type(model)()
    changed.CopyFrom(model)
    graph, done = Graph(changed), []
    for node in changed.graph.node:
        known = is_of_onnx(node) and node.op_type in _REWRITES
        before = _REWRITES[node.op_type](node, graph) if known else []
        done += [*before, node]
    copies = [type(node).FromString(node.SerializeToString()) for node in done]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    return changed


def _one_infinity(node: Any, graph: Graph) -> Sequence[Any]:
    """IsInf of one sign: both frontends look for both."""
    signs, dtype = infinities(node), graph.dtype(node.input[0])
    if sum(signs) != 1 or dtype is None:
        return ()
    node.op_type = "Equal"
    node.input.append(graph.add(np.asarray(np.inf if signs[0] else -np.inf, dtype)))
    del node.attribute[:]
    return ()


def _lowest(node: Any, graph: Graph) -> Sequence[Any]:
    """TVM's maximum of nothing but -inf is the lowest number, so -inf is what is no larger."""
    values = [graph.constant(name) for name in node.input]
    for n, value in enumerate(values):
        if value is None or value.dtype.kind != "f" or not np.isneginf(value).all():
            continue
        other = node.input[1 - n]
        dtype = graph.dtype(other) or value.dtype
        lowest = np.full(value.shape, np.finfo(dtype).min, dtype)
        node.op_type = "LessOrEqual"
        del node.input[:]
        node.input.extend([other, graph.add(lowest)])
        break
    return ()


def _gelu_by_tanh(node: Any, graph: Graph) -> Sequence[Any]:
    """0.17's frontend takes it for the exact one: the formula of ONNX instead."""
    if not IS_RELAY or attributes(node).get("approximate", b"none") == b"none":
        return ()
    x, y, make = node.input[0], node.output[0], extra("onnx").helper.make_node
    dtype = graph.dtype(x) or np.float32
    root = math.sqrt(2 / math.pi)
    half, one, three = (graph.add(np.asarray(v, dtype)) for v in (0.5, root, root * 0.044715))
    steps = (
        ("Mul", x, x, "square"), ("Mul", "square", three, "cubic"), ("Add", "cubic", one, "factor"),
        ("Mul", "factor", x, "inner"), ("Tanh", "inner", "tanh"), ("Mul", x, half, "half"),
        ("Mul", "half", "tanh", "rest"),
    )  # fmt: skip
    own = {step[-1] for step in steps}
    names = [[f"{y}.{word}" if word in own else word for word in step[1:]] for step in steps]
    before = [make(step[0], n[:-1], n[-1:]) for step, n in zip(steps, names, strict=True)]
    node.CopyFrom(make("Add", [f"{y}.half", f"{y}.rest"], [y]))
    return before


def _axes_as_attribute(node: Any, graph: Graph) -> Sequence[Any]:
    """0.17's frontend takes the first of the axes that are an input, and leaves the others."""
    if not IS_RELAY or len(node.input) < 2 or not node.input[1]:
        return ()
    axes = graph.constant(node.input[1])
    if axes is None:
        return ()  # which the frontend refuses
    given = attributes(node)
    x = node.input[0]
    del node.input[:], node.attribute[:]
    node.input.append(x)
    if not axes.size and given.get("noop_with_empty_axes"):
        node.op_type = "Identity"
        return ()
    if axes.size:
        given["axes"] = [int(axis) for axis in axes]
    for key in given.keys() - {"noop_with_empty_axes"}:
        node.attribute.append(extra("onnx").helper.make_attribute(key, given[key]))
    return ()


def _from_the_end(node: Any, graph: Graph) -> Sequence[Any]:
    """0.17's frontend does not count negative places from the end."""
    data, places = graph.shape(node.input[0]), graph.shape(node.input[1])
    if not IS_RELAY or data is None or places is None:
        return ()
    batch = attributes(node).get("batch_dims", 0)
    make, y = extra("onnx").helper.make_node, node.output[0]
    dtype = graph.dtype(node.input[1]) or np.int64
    counts = graph.add(np.asarray(data[batch : batch + places[-1]], dtype))
    zero, given = graph.add(np.asarray(0, dtype)), node.input[1]
    node.input[1] = f"{y}.places"
    return (
        make("Less", [given, zero], [f"{y}.below"]),
        make("Add", [given, counts], [f"{y}.moved"]),
        make("Where", [f"{y}.below", f"{y}.moved", given], [f"{y}.places"]),
    )


def _crossed(node: Any, graph: Graph) -> Sequence[Any]:
    """A Clip whose lower limit is the higher one: 0.17 gives the lower, ONNX the upper limit."""
    given, (x, *inputs) = attributes(node), node.input
    low, high = (
        graph.constant(inputs[n]) if len(inputs) > n else given.get(key)
        for n, key in enumerate(("min", "max"))
    )
    if not IS_RELAY or low is None or high is None or not np.all(low > high):
        return ()
    dtype, y = graph.dtype(x) or np.float32, node.output[0]
    low, high = (graph.add(np.asarray(limit, dtype)) for limit in (low, high))
    make, raised = extra("onnx").helper.make_node, f"{y}.raised"
    node.CopyFrom(make("Min", [raised, high], [y]))
    return (make("Max", [x, low], [raised]),)


def _with_nothing(node: Any, graph: Graph) -> Sequence[Any]:
    """A Concat of what has no element along its axis: 0.27 cannot load such a constant."""
    axis = attributes(node).get("axis", 1)
    shapes = [graph.shape(name) for name in node.input]
    kept = [
        name
        for name, shape in zip(node.input, shapes, strict=True)
        if shape is None or not -len(shape) <= axis < len(shape) or shape[axis]
    ]
    if kept and len(kept) < len(node.input):
        node.input[:] = kept
    if kept and len(kept) == 1:
        node.op_type = "Identity"
        del node.attribute[:]
    return ()


_REDUCTIONS = (
    "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare",
)  # fmt: skip
# Each changes a node in place, and returns the nodes that go before it.
_REWRITES: dict[str, Callable[[Any, Graph], Sequence[Any]]] = {
    **{f"Reduce{name}": _axes_as_attribute for name in _REDUCTIONS},
    "AveragePool": as_pads, "Clip": _crossed, "Concat": _with_nothing,
    "ConvTranspose": output_shape, "Equal": _lowest, "GatherND": _from_the_end,
    "Gelu": _gelu_by_tanh, "GlobalLpPool": power_of_size, "IsInf": _one_infinity,
    "LpPool": power_pool, "MaxPool": as_pads, "Resize": resized, "ScatterND": _from_the_end,
    "Upsample": resized,
}  # fmt: skip
