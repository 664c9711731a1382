"""What TVM's ONNX frontends read as something else than ONNX says: written so that they read it
right, or refused. Found with ONNX's own tests of its ops (docs/onnx.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tvm import GENERATION
from ..errors import InputError
from ..extra import extra
from .onnx_graph import Graph, attributes, nodes

# Attributes that a frontend does not look at, with the only value that they may have.
_UNREAD: dict[str, dict[str, Any]] = {
    "BatchNormalization": {"training_mode": 0},
    "Resize": {"antialias": 0, "keep_aspect_ratio_policy": b"stretch"},
    "RoiAlign": {"mode": b"avg"},
}
# Inputs that it takes for constants, whether they are or not.
_CONSTANTS: dict[str, tuple[int, ...]] = {"Dropout": (2,)}
if GENERATION == "relax":
    _CONSTANTS |= {"Expand": (1,), "NonMaxSuppression": (2, 3, 4)}
# Ops of which only the first result is ONNX's.
_FIRST_ONLY = ("BatchNormalization", "Dropout", "LayerNormalization")


def readable(model: Any, name: str) -> Any:
    """The model in forms that TVM's frontend reads as ONNX means them; a new one if need be.

    Raises InputError for a node that it would read as something else, by name, op and reason.
    """
    graph = Graph(model)
    for node in nodes(model.graph):
        for reason in filter(None, (check(node, graph) for check in _CHECKS)):
            where = f"{node.op_type} {node.name!r}" if node.name else node.op_type
            text = f"TVM's ONNX frontend would compute something else: {reason}"
            raise InputError(f"{name}: {where}: {text}")
    if not any(node.op_type in _REWRITES for node in model.graph.node):
        return model
    changed = type(model)()
    changed.CopyFrom(model)
    graph, done = Graph(changed), []
    for node in changed.graph.node:
        before = _REWRITES[node.op_type](node, graph) if node.op_type in _REWRITES else []
        done += [*before, node]
    copies = [type(node).FromString(node.SerializeToString()) for node in done]
    del changed.graph.node[:]
    changed.graph.node.extend(copies)
    return changed


def _unread(node: Any, graph: Graph) -> str:
    given, unread = attributes(node), _UNREAD.get(node.op_type, {})
    for key, only in unread.items():
        if given.get(key, only) != only:
            return f"{key} is {_shown(given[key])}, and is taken for {_shown(only)}"
    return ""


def _shown(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _variable(node: Any, graph: Graph) -> str:
    for n in _CONSTANTS.get(node.op_type, ()):
        if n < len(node.input) and node.input[n] and graph.constant(node.input[n]) is None:
            return f"its input {node.input[n]!r} is no constant"
    return ""


def _second(node: Any, graph: Graph) -> str:
    used = [name for name in node.output[1:] if name in graph.read]
    if node.op_type not in _FIRST_ONLY or not used:
        return ""
    return f"its result {used[0]!r} is used; only the first is right"


def _training(node: Any, graph: Graph) -> str:
    if node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]:
        return ""
    value = graph.constant(node.input[2])
    return "training_mode is true" if value is not None and value.any() else ""


def _empty(node: Any, graph: Graph) -> str:
    if not node.op_type.startswith("Reduce"):
        return ""
    shape = graph.shape(node.input[0])
    return f"it reduces {list(shape)}, which is empty" if shape and 0 in shape else ""


def _scales(node: Any, graph: Graph) -> str:
    """TVM's steps are those of the sizes: a scale that does not divide them is another one."""
    if node.op_type != "Resize" or len(node.input) < 3 or not node.input[2]:
        return ""
    scales, shape = graph.constant(node.input[2]), graph.shape(node.input[0])
    axes = attributes(node).get("axes")
    if scales is None or shape is None or not scales.size:
        return ""
    sizes = np.asarray(shape, float)[list(axes) if axes else slice(None)]
    exact = sizes * scales.astype(float)
    if (np.abs(exact - np.round(exact)) < 1e-4 * sizes).all():
        return ""
    return f"scales {scales.tolist()} give no whole sizes of {list(shape)}"


def _sign(node: Any, graph: Graph) -> str:
    """What `_one_infinity` cannot mend."""
    if node.op_type != "IsInf" or sum(_signs(node)) == 2:
        return ""
    mended = sum(_signs(node)) == 1 and graph.dtype(node.input[0]) is not None
    return "" if mended else "it looks for infinities of both signs"


_CHECKS: tuple[Callable[[Any, Graph], str], ...] = (
    _unread, _variable, _second, _training, _empty, _scales, _sign,
)  # fmt: skip


def _signs(node: Any) -> tuple[int, int]:
    given = attributes(node)
    return given.get("detect_positive", 1), given.get("detect_negative", 1)


def _one_infinity(node: Any, graph: Graph) -> Sequence[Any]:
    """IsInf of one sign: both frontends look for both."""
    signs, dtype = _signs(node), graph.dtype(node.input[0])
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


def _output_shape(node: Any, graph: Graph) -> Sequence[Any]:
    """ConvTranspose to a shape: the pads that lead there, by ONNX's formula."""
    given = attributes(node)
    image, weight = graph.shape(node.input[0]), graph.shape(node.input[1])
    if "output_shape" not in given or image is None or weight is None:
        return ()
    ones = [1] * (len(image) - 2)
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    more = given.get("output_padding", [0] * len(ones))
    wanted = given["output_shape"][-len(ones) :]
    total = [
        s * (e - 1) + m + (k - 1) * d + 1 - w
        for s, e, m, k, d, w in zip(
            strides, image[2:], more, weight[2:], dilations, wanted, strict=True
        )
    ]
    more = [m + max(-t, 0) for m, t in zip(more, total, strict=True)]
    room = [max(t, 0) for t in total]
    first = [t // 2 if given.get("auto_pad") == b"SAME_UPPER" else (t + 1) // 2 for t in room]
    pads = [*first, *(t - f for t, f in zip(room, first, strict=True))]
    given |= {"pads": pads, "output_padding": more}
    del node.attribute[:]
    for key in given.keys() - {"output_shape", "auto_pad"}:
        node.attribute.append(extra("onnx").helper.make_attribute(key, given[key]))
    return ()


def _gelu_by_tanh(node: Any, graph: Graph) -> Sequence[Any]:
    """0.17's frontend takes it for the exact one: the formula of ONNX instead."""
    if GENERATION == "relax" or attributes(node).get("approximate", b"none") == b"none":
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


# Each changes a node in place, and returns the nodes that go before it.
_REWRITES: dict[str, Callable[[Any, Graph], Sequence[Any]]] = {
    "ConvTranspose": _output_shape, "Equal": _lowest, "Gelu": _gelu_by_tanh, "IsInf": _one_infinity,
}  # fmt: skip
