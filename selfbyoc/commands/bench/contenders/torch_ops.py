"""ONNX ops as functions of PyTorch: what torch_graph.py writes of each node."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....errors import UnsupportedOp

if TYPE_CHECKING:
    import torch

    from .torch_reader import Reader

Attrs = Mapping[str, Any]


def _conv(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    args = [r.node(name) for name in names]
    pads, padding = list(a.get("pads", [0] * 4)), [0, 0]
    if pads[:2] == pads[2:]:
        padding = pads[:2]
    else:
        args[0] = r.call(r.functional.pad, args[0], [pads[1], pads[3], pads[0], pads[2]])
    options = {"stride": a.get("strides", [1, 1]), "dilation": a.get("dilations", [1, 1])}
    return r.call(r.functional.conv2d, *args, padding=padding, groups=a.get("group", 1), **options)


def _pool(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """Padding at the end alone is what ceil_mode does by itself (GoogLeNet, 2x strided)."""
    x, pads = r.node(names[0]), list(a.get("pads", [0] * 4))
    options = {"stride": a["strides"], "padding": pads[:2]}
    if pads[:2] != pads[2:]:
        options |= {"padding": 0, "ceil_mode": True}
    if a.get("ceil_mode"):
        options["ceil_mode"] = True
    return r.call(r.functional.max_pool2d, x, a["kernel_shape"], **options)


def _average(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
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


def _batch_norm(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    x, gamma, beta, mean, var = (r.node(name) for name in names)
    return r.call(r.functional.batch_norm, x, mean, var, gamma, beta, eps=a.get("epsilon", 1e-5))


def _gemm(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    if a.get("transA") or a.get("alpha", 1.0) != 1 or a.get("beta", 1.0) != 1:
        raise UnsupportedOp(f"Gemm with {dict(a)}")
    weight = r.arrays[names[1]] if a.get("transB") else r.arrays[names[1]].T
    return r.call(
        r.functional.linear, r.node(names[0]), r.constant(weight), *map(r.node, names[2:])
    )


def _matmul(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    if names[1] in r.arrays and r.arrays[names[1]].ndim == 2:
        return r.call(r.functional.linear, r.node(names[0]), r.constant(r.arrays[names[1]].T))
    return r.call(r.torch.matmul, r.node(names[0]), r.node(names[1]))


def _add(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """A bias goes into the linear layer in front of it."""
    x, y = (r.node(name) for name in names)
    is_bias = names[1] in r.arrays and r.arrays[names[1]].ndim == 1
    if is_bias and getattr(x, "target", None) is r.functional.linear and len(x.args) == 2:
        x.args = (*x.args, y)
        x.prepend(y)
        return x
    return r.call(r.torch.add, x, y)


def _binary(name: str) -> Callable[[Reader, Sequence[str], Attrs], torch.fx.Node]:
    return lambda r, names, a: r.call(getattr(r.torch, name), *(r.node(n) for n in names))


def _functional(name: str) -> Callable[[Reader, Sequence[str], Attrs], torch.fx.Node]:
    return lambda r, names, a: r.call(getattr(r.functional, name), r.node(names[0]))


def _clip(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    limits = [float(r.arrays[name]) for name in names[1:]]
    return r.call(r.functional.hardtanh, r.node(names[0]), *limits)


def _layer_norm(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    x, gamma, beta = (r.node(name) for name in names)
    width = r.arrays[names[1]].shape
    return r.call(r.functional.layer_norm, x, width, gamma, beta, a.get("epsilon", 1e-5))


def _lrn(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(
        r.functional.local_response_norm, r.node(names[0]), a["size"], a.get("alpha", 1e-4),
        a.get("beta", 0.75), a.get("bias", 1.0),
    )  # fmt: skip


def _reshape(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.reshape, r.node(names[0]), r.arrays[names[1]].tolist())


def _joined(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.cat, [r.node(name) for name in names], a["axis"])


def _softmax(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """Before opset 13 the axes from this one on are one: all networks here give the last."""
    return r.call(r.torch.softmax, r.node(names[0]), a.get("axis", -1 if r.opset >= 13 else 1))


def _axes(r: Reader, names: Sequence[str], a: Attrs) -> list[int]:
    """An attribute, from opset 13 or 18 on an input."""
    return r.arrays[names[1]].tolist() if len(names) > 1 else list(a["axes"])


def _reduce(name: str) -> Callable[[Reader, Sequence[str], Attrs], torch.fx.Node]:
    def reduce(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
        function, keep = getattr(r.torch, name), bool(a.get("keepdims", 1))
        return r.call(function, r.node(names[0]), dim=_axes(r, names, a), keepdim=keep)

    return reduce


def _norm(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    keep = bool(a.get("keepdims", 1))
    function, axes = r.torch.linalg.vector_norm, _axes(r, names, a)
    return r.call(function, r.node(names[0]), dim=axes, keepdim=keep)


def _transpose(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.permute, r.node(names[0]), a["perm"])


def _gather(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    chosen = r.arrays.get(names[1])
    if chosen is not None and chosen.ndim == 0:
        return r.call(r.torch.select, r.node(names[0]), a.get("axis", 0), int(chosen))
    if a.get("axis", 0) != 0 or names[0] not in r.arrays or r.arrays[names[0]].ndim != 2:
        raise UnsupportedOp("Gather of other things than rows of a table, or one place")
    return r.call(r.functional.embedding, r.node(names[1]), r.node(names[0]))


def _split(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    """Sizes are an attribute, from opset 13 on an input, or from 18 on a number of parts."""
    x, axis = r.node(names[0]), a.get("axis", 0)
    if "num_outputs" in a:
        return r.call(r.torch.chunk, x, a["num_outputs"], axis)
    sizes = r.arrays[names[1]].tolist() if len(names) > 1 else list(a["split"])
    return r.call(r.torch.split, x, sizes, axis)


def _unsqueeze(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    found = r.node(names[0])
    for axis in sorted(_axes(r, names, a)):
        found = r.call(r.torch.unsqueeze, found, axis)
    return found


def _squeeze(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.squeeze, r.node(names[0]), _axes(r, names, a))


def _hard_sigmoid(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    if abs(a.get("alpha", 0.2) - 1 / 6) > 1e-6 or a.get("beta", 0.5) != 0.5:
        raise UnsupportedOp(f"HardSigmoid with {dict(a)}")
    return r.call(r.functional.hardsigmoid, r.node(names[0]))


def _gelu(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    approximate = a.get("approximate", b"none").decode()
    return r.call(r.functional.gelu, r.node(names[0]), approximate=approximate)


def _global_pool(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.functional.adaptive_avg_pool2d, r.node(names[0]), 1)


def _flatten(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.call(r.torch.flatten, r.node(names[0]), a.get("axis", 1))


def _same(r: Reader, names: Sequence[str], a: Attrs) -> torch.fx.Node:
    return r.node(names[0])


OPS: dict[str, Callable[[Reader, Sequence[str], Attrs], Any]] = {
    "Add": _add, "AveragePool": _average, "BatchNormalization": _batch_norm, "Clip": _clip,
    "Concat": _joined, "Conv": _conv, "Div": _binary("div"), "Dropout": _same,
    "Erf": lambda r, names, a: r.call(r.torch.erf, r.node(names[0])), "Flatten": _flatten,
    "Gather": _gather, "Gelu": _gelu, "Gemm": _gemm, "GlobalAveragePool": _global_pool,
    "HardSigmoid": _hard_sigmoid, "HardSwish": _functional("hardswish"), "Identity": _same,
    "LRN": _lrn, "LayerNormalization": _layer_norm, "MatMul": _matmul, "MaxPool": _pool,
    "Mul": _binary("mul"), "ReduceL2": _norm, "ReduceMean": _reduce("mean"),
    "Relu": _functional("relu"), "Reshape": _reshape, "Sigmoid": _functional("sigmoid"),
    "Softmax": _softmax, "Split": _split, "Squeeze": _squeeze, "Sum": _add,
    "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
