"""The neutral ops in NumPy, independent of TVM: what a composite is checked against when it brings
no reference.

Floating-point ops compute in float64 and keep it to the end; integer ops compute in the op's own
dtype, so that int8 chains compare bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compute.quantize import fixed_point
from ..errors import UnsupportedOp
from ..ir.graph import OpCall, OpGraph, Value
from .numpy_windows import avg_pool2d, conv2d, max_pool2d

Array = np.ndarray
Evaluate = Callable[[Sequence[Array], OpCall], Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _along(vector: Array, axis: int, ndim: int) -> Array:
    return vector.reshape([-1 if i == axis % ndim else 1 for i in range(ndim)])


def _dense(ins: Sequence[Array], call: OpCall) -> Array:
    x, w = ins
    if np.issubdtype(x.dtype, np.integer):
        x, w = x.astype(call.outputs[0].dtype), w.astype(call.outputs[0].dtype)
    return x @ w.T


def _batch_matmul(ins: Sequence[Array], call: OpCall) -> Array:
    a, b = ins
    a = a.swapaxes(-1, -2) if call.attrs["transpose_a"] else a
    b = b.swapaxes(-1, -2) if call.attrs["transpose_b"] else b
    return a @ b


def _softmax(ins: Sequence[Array], call: OpCall) -> Array:
    axis = call.attrs["axis"]
    e = np.exp(ins[0] - ins[0].max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _layer_norm(ins: Sequence[Array], call: OpCall) -> Array:
    x, gamma, beta = ins
    axis = call.attrs["axis"]
    centred = x - x.mean(axis=axis, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=axis, keepdims=True) + call.attrs["epsilon"])
    return normal * _along(gamma, axis, x.ndim) + _along(beta, axis, x.ndim)


def _batch_norm(ins: Sequence[Array], call: OpCall) -> list[Array]:
    x, gamma, beta, mean, var = ins
    along = [_along(v, call.attrs["axis"], x.ndim) for v in (gamma, beta, mean, var)]
    out = (x - along[2]) / np.sqrt(along[3] + call.attrs["epsilon"]) * along[0] + along[1]
    return [out, mean, var]


def _lrn(ins: Sequence[Array], call: OpCall) -> Array:
    (x,), a = ins, call.attrs
    half = a["size"] // 2
    pads = [(half, half) if i == a["axis"] % x.ndim else (0, 0) for i in range(x.ndim)]
    view = np.lib.stride_tricks.sliding_window_view(np.pad(x**2, pads), a["size"], axis=a["axis"])
    return x / (a["bias"] + a["alpha"] * view.sum(axis=-1) / a["size"]) ** a["beta"]


def _split(ins: Sequence[Array], call: OpCall) -> list[Array]:
    axis = call.attrs["axis"]
    ends = np.cumsum([value.shape[axis] for value in call.outputs])
    return np.split(ins[0], ends[:-1], axis=axis)


def _requantize(ins: Sequence[Array], call: OpCall) -> Array:
    a, dtype = call.attrs, np.dtype(call.outputs[0].dtype)
    multiplier, shift = fixed_point(a["input_scale"] / a["output_scale"])
    wide = (ins[0].astype(np.int64) - a["input_zero_point"]) * multiplier + (1 << (shift - 1))
    value = (wide >> shift) + a["output_zero_point"]
    return np.clip(value, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def _cast(ins: Sequence[Array], call: OpCall) -> Array:
    dtype = np.dtype(call.attrs["dtype"])
    return ins[0].astype(np.float64 if np.issubdtype(dtype, np.floating) else dtype)


def _reducer(function: Callable[..., Array]) -> Evaluate:
    return lambda ins, call: function(
        ins[0], axis=call.attrs["axis"], keepdims=call.attrs["keepdims"]
    )


def _round(ins: Sequence[Array], call: OpCall) -> Array:
    """Relax rounds halves to even, Relay away from zero (numpy has no function for that)."""
    (x,) = ins
    if call.attrs["ties"] == "even":
        return np.round(x)
    return np.trunc(x + np.copysign(np.nextafter(0.5, 0), x))


def _pure(function: Callable[..., Array]) -> Evaluate:
    return lambda ins, call: function(*ins)


def _spatial_mean(ins: Sequence[Array], call: OpCall) -> Array:
    return ins[0].mean(
        axis=tuple(call.attrs["layout"].index(letter) for letter in "HW"), keepdims=True
    )


NUMPY: dict[str, Evaluate] = {
    "abs": _pure(np.abs), "add": _pure(np.add), "avg_pool2d": avg_pool2d,
    "batch_matmul": _batch_matmul,
    "batch_norm": _batch_norm, "cast": _cast, "conv2d": conv2d, "dense": _dense,
    "divide": _pure(np.divide),
    "bias_add": lambda ins, call: ins[0] + _along(ins[1], call.attrs["axis"], ins[0].ndim),
    "broadcast_to": lambda ins, call: np.broadcast_to(ins[0], call.attrs["shape"]),
    "clip": lambda ins, call: np.clip(ins[0], *_limits(ins[0], call)),
    "concatenate": lambda ins, call: np.concatenate(ins, axis=call.attrs["axis"]),
    "erf": _pure(_erf), "exp": _pure(np.exp), "global_avg_pool2d": _spatial_mean,
    "gelu": _pure(lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))), "layer_norm": _layer_norm,
    "leaky_relu": lambda ins, call: np.where(ins[0] > 0, ins[0], ins[0] * call.attrs["alpha"]),
    "log": _pure(np.log), "lrn": _lrn, "max": _reducer(np.max), "max_pool2d": max_pool2d,
    "maximum": _pure(np.maximum), "mean": _reducer(np.mean), "minimum": _pure(np.minimum),
    "multiply": _pure(np.multiply), "negative": _pure(np.negative), "power": _pure(np.power),
    "relu": _pure(lambda x: np.maximum(x, np.zeros((), x.dtype))), "requantize": _requantize,
    "reshape": lambda ins, call: ins[0].reshape(call.attrs["shape"]),
    "right_shift": _pure(np.right_shift),
    "round": _round, "rsqrt": _pure(lambda x: 1 / np.sqrt(x)),
    "sigmoid": _pure(lambda x: 1 / (1 + np.exp(-x))), "silu": _pure(lambda x: x / (1 + np.exp(-x))),
    "softmax": _softmax, "split": _split, "sqrt": _pure(np.sqrt), "subtract": _pure(np.subtract),
    "sum": _reducer(np.sum),
    "tanh": _pure(np.tanh), "transpose": lambda ins, call: ins[0].transpose(call.attrs["axes"]),
}  # fmt: skip


def _limits(x: Array, call: OpCall) -> tuple[Any, Any]:
    limits = (call.attrs["a_min"], call.attrs["a_max"])
    return limits if np.issubdtype(x.dtype, np.floating) else (int(limits[0]), int(limits[1]))


def evaluate(graph: OpGraph, arrays: Sequence[Array]) -> list[Array]:
    """Interpret a graph op by op on its inputs; floating-point results come as float64."""
    known = all_values(graph, arrays)
    return [known[id(v)] for v in graph.outputs]


def all_values(
    graph: OpGraph,
    arrays: Sequence[Array],
    after: Callable[[Value, Array], Array] = lambda value, array: array,
) -> dict[int, Array]:
    """Every value of the graph, by its id. `after` may change what an op computed."""
    known = {id(v): _wide(a) for v, a in zip(graph.inputs, arrays, strict=True)}
    for call in graph.ops:
        for value in call.inputs:
            if id(value) not in known and value.scalar is not None:
                known[id(value)] = _wide(np.full(value.shape, value.scalar, value.dtype))
        if call.kind not in NUMPY:
            raise UnsupportedOp(
                f"{call.name}: no NumPy meaning of {call.kind!r}; known: {sorted(NUMPY)}"
            )
        found = NUMPY[call.kind]([known[id(v)] for v in call.inputs], call)
        outputs = found if isinstance(found, list) else [found]
        for value, array in zip(call.outputs, outputs, strict=False):
            known[id(value)] = after(value, array)
    return known


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array
