"""How each op of the vocabulary stands in ONNX models, in the spellings of several exporters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import UnsupportedOp
from . import onnx_activations as activations
from .onnx_ops import PREFIX
from .onnx_place import Place

_NAMES = {
    "abs": "Abs", "add": "Add", "broadcast_to": "Expand", "divide": "Div", "erf": "Erf",
    "exp": "Exp", "log": "Log", "maximum": "Max", "minimum": "Min", "multiply": "Mul",
    "negative": "Neg", "power": "Pow", "round": "Round", "sigmoid": "Sigmoid", "sqrt": "Sqrt",
    "subtract": "Sub", "tanh": "Tanh", "greater": "Greater", "greater_equal": "GreaterOrEqual",
    "less": "Less", "less_equal": "LessOrEqual", "equal": "Equal", "where": "Where",
}  # fmt: skip


def plain(p: Place) -> str:
    """An op that ONNX has by another name, or one of ONNX's own."""
    kind = p.node.kind
    if kind.startswith(PREFIX):
        return _own(p)
    if kind not in _NAMES:
        raise UnsupportedOp(f"ONNX has no op like {kind}")
    return p.w.op(_NAMES[kind], *p.inputs)


def _own(p: Place) -> str:
    """One of ONNX's own ops; some have attributes as inputs."""
    kind, attrs, w = p.node.kind.removeprefix(PREFIX), dict(p.attrs), p.w
    if kind == "Pad":
        more = [w.ints(*attrs.pop("pads")), p.number(attrs.pop("value"))]
        return w.op(kind, *p.inputs, *more, **attrs)
    if kind == "Resize":
        scale = attrs.pop("scale")
        scales = w.weight(np.array([1, 1, scale, scale], "float32"))
        if attrs["mode"] == "nearest":
            attrs["nearest_mode"] = "floor" if scale == 2 else "round_prefer_floor"
        return w.op(kind, *p.inputs, "", scales, **attrs)
    if kind == "Slice":
        return w.op(kind, *p.inputs, *(w.ints(attrs[n]) for n in ("start", "end", "axis", "step")))
    if kind == "BatchNormalization" and attrs["training_mode"]:
        return w.op(kind, *p.inputs, outputs=3, **attrs)[0]
    return w.op(kind, *p.inputs, **attrs)


def _bias_add(p: Place) -> str:
    (x, bias), (shape, _) = p.inputs, p.types[0]
    axis = p.attrs["axis"] % len(shape)
    fits = p.only_reader() and p.is_leaf(1) and axis == 1 and p.rng.random() < 0.6
    if fits and p.w.absorbed(x, "Conv" if len(shape) == 4 else "Gemm", bias):
        return x
    if axis != len(shape) - 1:
        column = [*([1] * axis), shape[axis], *([1] * (len(shape) - axis - 1))]
        axes = [n for n in range(len(shape)) if n != axis]
        by_shape = p.rng.random() < 0.5
        more = p.w.ints(*column) if by_shape else p.w.ints(*axes)
        bias = p.w.op("Reshape" if by_shape else "Unsqueeze", bias, more)
    return p.w.op("Add", x, bias) if p.rng.random() < 0.7 else p.w.op("Add", bias, x)


_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


def _image(p: Place, layout: str, made: Callable[[str], str]) -> str:
    """An op on an image, with transposes around it where that is NHWC."""
    if layout == "NCHW":
        return made(p.inputs[0])
    return p.w.turned(made(p.w.turned(p.inputs[0], _TO_NCHW)), _TO_NHWC)


def _conv2d(p: Place) -> str:
    a, weight = p.attrs, p.inputs[1]
    if a["out_dtype"] not in (None, "", p.types[0][1]):
        raise UnsupportedOp("ONNX's Conv has its input's dtype")
    weight = p.w.turned(weight, [a["kernel_layout"].index(letter) for letter in "OIHW"])
    spatial = {"strides": a["strides"], "dilations": a["dilation"], "pads": a["padding"]}
    group = {"group": a["groups"]}
    return _image(p, a["data_layout"], lambda x: p.w.op("Conv", x, weight, **spatial, **group))


def _resized(p: Place) -> str:
    a, (shape, _) = p.attrs, p.types[0]
    mode, rounding = a["coordinate_transformation_mode"], a["rounding_method"]
    is_nearest = a["method"] == "nearest_neighbor"
    if mode == "tf_half_pixel_for_nn" or (is_nearest and rounding in ("", "round")):
        raise UnsupportedOp(f"ONNX's Resize has no {mode!r}, or no rounding {rounding!r}")
    channels = shape[a["layout"].index("C")]
    sizes = p.w.ints(shape[a["layout"].index("N")], channels, *a["size"])
    attrs = {"mode": "nearest" if is_nearest else "linear", "coordinate_transformation_mode": mode,
             "nearest_mode": rounding if is_nearest else None}  # fmt: skip
    return _image(p, a["layout"], lambda x: p.w.op("Resize", x, "", "", sizes, **attrs))


def _pool(p: Place) -> str:
    a, is_max = p.attrs, p.node.kind == "max_pool2d"
    if not is_max and a["dilation"] != (1, 1):
        raise UnsupportedOp("ONNX's AveragePool has no dilations before opset 19")
    attrs = {"kernel_shape": a["pool_size"], "strides": a["strides"], "pads": a["padding"],
             "ceil_mode": int(a["ceil_mode"])}  # fmt: skip
    attrs |= {"dilations": a["dilation"]} if is_max else {
        "count_include_pad": int(a["count_include_pad"])
    }  # fmt: skip
    kind = "MaxPool" if is_max else "AveragePool"
    return _image(p, a["layout"], lambda x: p.w.op(kind, x, **attrs))


def _global_pool(p: Place) -> str:
    if p.rng.random() < 0.5:
        axes = (2, 3) if p.attrs["layout"] == "NCHW" else (1, 2)
        return p.w.reduced("ReduceMean", p.inputs[0], axes, 1)
    return _image(p, p.attrs["layout"], lambda x: p.w.op("GlobalAveragePool", x))


def _dense(p: Place) -> str:
    (x, weight), rows = p.inputs, len(p.types[0][0])
    if rows == 2 and p.rng.random() < 0.6:
        attrs: dict[str, Any] = {"alpha": 1.0, "beta": 1.0} if p.rng.random() < 0.3 else {}
        if p.rng.random() < 0.3:
            return p.w.op("Gemm", x, p.w.turned(weight, (1, 0)), **attrs)
        return p.w.op("Gemm", x, weight, transB=1, **attrs)
    return p.w.op("MatMul", x, p.w.turned(weight, (1, 0)))


def _matmul(p: Place) -> str:
    sides = []
    for n, flag in enumerate(("transpose_a", "transpose_b")):
        ndim = len(p.types[n][0])
        axes = [*range(ndim - 2), ndim - 1, ndim - 2] if p.attrs.get(flag) else range(ndim)
        sides.append(p.w.turned(p.inputs[n], list(axes)))
    return p.w.op("MatMul", *sides)


def _last(p: Place, made: Callable[[str], str], to: int = -1) -> str:
    """An op along one axis, which a transpose makes another one."""
    order = list(range(len(p.types[0][0])))
    axis, wanted = (a % len(order) for a in (p.attrs["axis"], to))
    order[axis], order[wanted] = order[wanted], order[axis]
    return p.w.turned(made(p.w.turned(p.inputs[0], order)), order)


def _layer_norm(p: Place) -> str:
    how = {"axis": -1, "epsilon": p.attrs["epsilon"]}
    return _last(p, lambda x: p.w.op("LayerNormalization", x, *p.inputs[1:], **how))


def _rms_norm(p: Place) -> str:
    op, two, epsilon = p.w.op, p.number(2), p.number(p.attrs["epsilon"])

    def normal(x: str) -> str:  # ONNX's own op is of opset 23
        mean = p.w.reduced("ReduceMean", op("Pow", x, two), (-1,), 1)
        return op("Mul", p.inputs[1], op("Div", x, op("Sqrt", op("Add", mean, epsilon))))

    return _last(p, normal)


def _batch_norm(p: Place) -> list[str]:
    """Only the first of the results is ever read: ONNX has no others at inference."""
    shape = p.types[0][0]
    if len(shape) < 2 or any(n.kind == "item" and n.attrs["index"] and p.index in n.inputs
                             for n in p.program.nodes):  # fmt: skip
        raise UnsupportedOp("ONNX's BatchNormalization returns no moments")
    epsilon = {"epsilon": p.attrs["epsilon"]}
    normed = _last(p, lambda x: p.w.op("BatchNormalization", x, *p.inputs[1:], **epsilon), 1)
    return [normed, *p.inputs[3:]]


def _lrn(p: Place) -> str:
    attrs = {name: p.attrs[name] for name in ("size", "alpha", "beta", "bias")}
    if len(p.types[0][0]) != 4:
        raise UnsupportedOp("ONNX Runtime's LRN is of images")
    return _last(p, lambda x: p.w.op("LRN", x, **attrs), 1)


def _reduced(p: Place) -> str:
    axis = p.attrs["axis"]
    axes = (axis,) if isinstance(axis, int) else axis
    name = f"Reduce{p.node.kind.capitalize()}"
    return p.w.reduced(name, p.inputs[0], axes, int(p.attrs["keepdims"]))


def _reshape(p: Place) -> str:
    before, after = p.types[0][0], tuple(p.attrs["shape"])
    is_flat = len(after) == 2 and len(before) > 1 and after[0] == before[0]
    if is_flat and p.rng.random() < 0.6:
        return p.w.op("Flatten", p.inputs[0])
    spelled = list(after)
    if after and p.rng.random() < 0.4:
        spelled[p.rng.randrange(len(after))] = -1
    return p.w.op("Reshape", p.inputs[0], p.w.ints(*spelled))


def _transposed(p: Place) -> str:
    a, rows = p.attrs, p.node.kind == "conv1d_transpose"
    attrs = {name: a[name][1:] if rows else a[name] for name in ("strides", "output_padding")}
    pads = a["padding"][1::2] if rows else a["padding"]
    return p.w.op("ConvTranspose", *p.inputs, pads=pads, **attrs)


def _split(p: Place) -> list[str]:
    parts, axis = p.attrs["indices_or_sections"], p.attrs["axis"]
    size = p.types[0][0][axis] // parts
    given = {"outputs": parts, "axis": axis}
    if p.rng.random() < 0.7:
        return p.w.op("Split", p.inputs[0], p.w.ints(*[size] * parts), **given)
    number = parts if p.w.opset >= 18 else None
    return p.w.op("Split", p.inputs[0], num_outputs=number, **given)


def _cast(p: Place) -> str:
    to = p.w.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(p.attrs["dtype"]))
    return p.w.op("Cast", p.inputs[0], to=to)


WRITE: dict[str, Callable[[Place], Any]] = {
    "batch_matmul": _matmul, "batch_norm": _batch_norm, "bias_add": _bias_add, "cast": _cast,
    "broadcast_to": lambda p: p.w.op("Expand", p.inputs[0], p.w.ints(*p.attrs["shape"])),
    "clip": activations.clip, "conv2d": _conv2d, "dense": _dense, "gelu": activations.gelu,
    "concatenate": lambda p: p.w.op("Concat", *p.inputs, axis=p.attrs["axis"]),
    "global_avg_pool2d": _global_pool, "layer_norm": _layer_norm, "lrn": _lrn,
    "hard_swish": activations.hard_swish,
    "leaky_relu": lambda p: p.w.op("LeakyRelu", p.inputs[0], alpha=p.attrs["alpha"]),
    "matmul": _matmul, "relu": activations.relu, "gelu_tanh": activations.gelu_tanh,
    "reshape": _reshape, "resize2d": _resized, "rms_norm": _rms_norm,
    **dict.fromkeys(("max", "mean", "sum"), _reduced),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), _pool),
    "rsqrt": lambda p: p.w.op("Reciprocal", p.w.op("Sqrt", p.inputs[0])),
    "silu": lambda p: p.w.op("Mul", p.inputs[0], p.w.op("Sigmoid", p.inputs[0])),
    "softmax": lambda p: p.w.op("Softmax", p.inputs[0], axis=p.attrs["axis"]),
    "split": _split, "conv1d_transpose": _transposed, "conv2d_transpose": _transposed,
    "tile": lambda p: p.w.op("Tile", p.inputs[0], p.w.ints(*p.attrs["repeats"])),
    "transpose": lambda p: p.w.op("Transpose", p.inputs[0], perm=p.attrs["axes"]),
}  # fmt: skip
