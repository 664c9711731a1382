"""An ONNX model as a torch.fx module: straight Python code, which eager runs and inductor compiles.

Only what the workloads need, each op by the one PyTorch function that a person would write. All
else raises UnsupportedOp: then PyTorch does not take part.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....common.optional import extra
from ....errors import UnsupportedOp
from .torch_gelu import join_gelu

if TYPE_CHECKING:
    import onnx
    import torch

Attrs = Mapping[str, Any]


class _Reader:
    """Values by their ONNX name: fx nodes, and arrays where a value is constant."""

    def __init__(self, model: onnx.ModelProto) -> None:
        onnx, self.torch = extra("onnx"), extra("torch")
        self.functional = self.torch.nn.functional
        self.root, self.graph = self.torch.nn.Module(), self.torch.fx.Graph()
        self.arrays = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
        self.opset = max((o.version for o in model.opset_import if not o.domain), default=1)
        names = [i.name for i in model.graph.input if i.name not in self.arrays]
        self.nodes = {n: self.graph.placeholder(f"x{i}") for i, n in enumerate(names)}

    def constant(self, array: np.ndarray) -> torch.fx.Node:
        name = f"constant_{len(dict(self.root.named_buffers()))}"
        self.root.register_buffer(name, self.torch.from_numpy(array.copy()))
        return self.graph.get_attr(name)

    def node(self, name: str) -> torch.fx.Node:
        """An fx node of any value; a constant of one element is a number."""
        if name not in self.nodes:
            array = self.arrays[name]
            self.nodes[name] = array.item() if array.ndim == 0 else self.constant(array)
        return self.nodes[name]

    def call(
        self, function: Callable[..., object], *args: object, **options: object
    ) -> torch.fx.Node:
        return self.graph.call_function(function, args, options)


def graph_module(model: onnx.ModelProto) -> torch.fx.GraphModule:
    """The module of an ONNX model; it takes the inputs in order and returns a list."""
    onnx, reader = extra("onnx"), _Reader(model)
    for node in model.graph.node:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Reshape" and node.input[0] in reader.arrays:  # GoogLeNet's last weight
            array, shape = (reader.arrays[name] for name in node.input)
            reader.arrays[node.output[0]] = array.reshape(shape)
            continue
        if node.op_type == "Constant" and "value" in attrs:
            reader.arrays[node.output[0]] = onnx.numpy_helper.to_array(attrs["value"])
            continue
        if node.op_type not in _OPS:
            raise UnsupportedOp(f"{node.op_type} has no function of PyTorch here")
        reader.nodes[node.output[0]] = _OPS[node.op_type](reader, node.input, attrs)
    reader.graph.output([reader.nodes[o.name] for o in model.graph.output])
    join_gelu(reader.torch, reader.graph)
    return reader.torch.fx.GraphModule(reader.root, reader.graph)


def _conv(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    args = [r.node(name) for name in names]
    pads, padding = list(a.get("pads", [0] * 4)), [0, 0]
    if pads[:2] == pads[2:]:
        padding = pads[:2]
    else:
        args[0] = r.call(r.functional.pad, args[0], [pads[1], pads[3], pads[0], pads[2]])
    options = {"stride": a.get("strides", [1, 1]), "dilation": a.get("dilations", [1, 1])}
    return r.call(r.functional.conv2d, *args, padding=padding, groups=a.get("group", 1), **options)


def _pool(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """Padding at the end alone is what ceil_mode does by itself (GoogLeNet, 2x strided)."""
    x, pads = r.node(names[0]), list(a.get("pads", [0] * 4))
    options = {"stride": a["strides"], "padding": pads[:2]}
    if pads[:2] != pads[2:]:
        options |= {"padding": 0, "ceil_mode": True}
    if a.get("ceil_mode"):
        options["ceil_mode"] = True
    return r.call(r.functional.max_pool2d, x, a["kernel_shape"], **options)


def _average(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """Other padding at the end than at the beginning: padded by the larger, then cut (stride 1)."""
    top, left, bottom, right = a.get("pads", [0] * 4)
    pads = [max(top, bottom), max(left, right)]
    y = r.call(
        r.functional.avg_pool2d, r.node(names[0]), a["kernel_shape"], stride=a["strides"],
        padding=pads, count_include_pad=bool(a.get("count_include_pad", 0)),
    )  # fmt: skip
    if [top, left] == [bottom, right]:
        return y
    if list(a["strides"]) != [1, 1]:
        raise UnsupportedOp(f"AveragePool with strides {a['strides']} and padding {a['pads']}")
    ends = [(pads[0] - top, pads[0] - bottom), (pads[1] - left, pads[1] - right)]
    kept = (..., *(slice(begin, -end if end else None) for begin, end in ends))
    return r.call(operator.getitem, y, kept)


def _batch_norm(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    x, gamma, beta, mean, var = (r.node(name) for name in names)
    return r.call(r.functional.batch_norm, x, mean, var, gamma, beta, eps=a.get("epsilon", 1e-5))


def _gemm(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    if a.get("transA") or a.get("alpha", 1.0) != 1 or a.get("beta", 1.0) != 1:
        raise UnsupportedOp(f"Gemm with {dict(a)}")
    weight = r.arrays[names[1]] if a.get("transB") else r.arrays[names[1]].T
    return r.call(
        r.functional.linear, r.node(names[0]), r.constant(weight), *map(r.node, names[2:])
    )


def _matmul(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    if names[1] in r.arrays and r.arrays[names[1]].ndim == 2:
        return r.call(r.functional.linear, r.node(names[0]), r.constant(r.arrays[names[1]].T))
    return r.call(r.torch.matmul, r.node(names[0]), r.node(names[1]))


def _add(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """A bias goes into the linear layer in front of it."""
    x, y = (r.node(name) for name in names)
    is_bias = names[1] in r.arrays and r.arrays[names[1]].ndim == 1
    if is_bias and getattr(x, "target", None) is r.functional.linear and len(x.args) == 2:
        x.args = (*x.args, y)
        x.prepend(y)
        return x
    return r.call(r.torch.add, x, y)


def _binary(name: str) -> Callable[[_Reader, Sequence[str], Attrs], torch.fx.Node]:
    return lambda r, names, a: r.call(getattr(r.torch, name), *(r.node(n) for n in names))


def _functional(name: str) -> Callable[[_Reader, Sequence[str], Attrs], torch.fx.Node]:
    return lambda r, names, a: r.call(getattr(r.functional, name), r.node(names[0]))


def _clip(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    limits = [float(r.arrays[name]) for name in names[1:]]
    return r.call(r.functional.hardtanh, r.node(names[0]), *limits)


def _layer_norm(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    x, gamma, beta = (r.node(name) for name in names)
    width = r.arrays[names[1]].shape
    return r.call(r.functional.layer_norm, x, width, gamma, beta, a.get("epsilon", 1e-5))


def _lrn(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(
        r.functional.local_response_norm, r.node(names[0]), a["size"], a.get("alpha", 1e-4),
        a.get("beta", 0.75), a.get("bias", 1.0),
    )  # fmt: skip


def _reshape(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.reshape, r.node(names[0]), r.arrays[names[1]].tolist())


def _joined(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.cat, [r.node(name) for name in names], a["axis"])


def _softmax(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """Before opset 13 the axes from this one on are one: all networks here give the last."""
    return r.call(r.torch.softmax, r.node(names[0]), a.get("axis", -1 if r.opset >= 13 else 1))


def _reduce(name: str) -> Callable[[_Reader, Sequence[str], Attrs], torch.fx.Node]:
    def reduce(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
        function, keep = getattr(r.torch, name), bool(a.get("keepdims", 1))
        return r.call(function, r.node(names[0]), dim=a["axes"], keepdim=keep)

    return reduce


def _norm(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    keep = bool(a.get("keepdims", 1))
    return r.call(r.torch.linalg.vector_norm, r.node(names[0]), dim=a["axes"], keepdim=keep)


def _transpose(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.permute, r.node(names[0]), a["perm"])


def _gather(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    if a.get("axis", 0) != 0 or names[0] not in r.arrays or r.arrays[names[0]].ndim != 2:
        raise UnsupportedOp("Gather of other things than rows of a table")
    return r.call(r.functional.embedding, r.node(names[1]), r.node(names[0]))


def _global_pool(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.functional.adaptive_avg_pool2d, r.node(names[0]), 1)


def _flatten(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.flatten, r.node(names[0]), a.get("axis", 1))


def _same(r: _Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.node(names[0])


_OPS: dict[str, Callable[[_Reader, Sequence[str], Attrs], Any]] = {
    "Add": _add, "AveragePool": _average, "BatchNormalization": _batch_norm, "Clip": _clip,
    "Concat": _joined, "Conv": _conv, "Div": _binary("div"), "Dropout": _same,
    "Erf": lambda r, names, a: r.call(r.torch.erf, r.node(names[0])), "Flatten": _flatten,
    "Gather": _gather, "Gemm": _gemm, "GlobalAveragePool": _global_pool, "LRN": _lrn,
    "LayerNormalization": _layer_norm, "MatMul": _matmul, "MaxPool": _pool,
    "Mul": _binary("mul"), "ReduceL2": _norm, "ReduceMean": _reduce("mean"),
    "Relu": _functional("relu"), "Reshape": _reshape, "Softmax": _softmax, "Sum": _add,
    "Transpose": _transpose,
}  # fmt: skip
