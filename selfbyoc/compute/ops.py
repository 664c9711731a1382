"""The meaning of each neutral op as te.compute: what stacking puts together.

A compute takes the op's input tensors and the OpCall, and returns its tensor or tensors. Every
stage's name begins with the op's name, so that a printed function reads like the composite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tvm import dtype_of, te, tir, topi
from ..errors import UnsupportedOp
from ..ir.graph import OpCall
from ..language.types import Tensor
from . import mathfn as M
from .conv import avg_pool2d, conv2d, max_pool2d
from .reduce import batch_norm, global_avg_pool2d, layer_norm, lrn, reduce, softmax

Compute = Callable[[Sequence[Tensor], OpCall], Any]


def _const(value: float, dtype: Any) -> Any:
    return tir.const(value, dtype)


def _broadcast(tensor: Tensor, out_index: Sequence[Any]) -> Any:
    """Read a tensor at an index of a shape that it broadcasts to."""
    index = out_index[len(out_index) - len(tensor.shape) :]
    return tensor(*(0 if int(e) == 1 else i for e, i in zip(tensor.shape, index, strict=True)))


def _elementwise(function: Callable[..., Any]) -> Compute:
    """An op on elements, its inputs broadcast to the output's shape."""

    def compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
        shape = call.outputs[0].shape
        return te.compute(
            shape, lambda *i: function(*(_broadcast(t, i) for t in ins)), name=call.name
        )

    return compute


def _with_attrs(function: Callable[..., Any]) -> Compute:
    """An op on elements that also reads attributes."""

    def compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
        (x,) = ins
        return te.compute(
            call.outputs[0].shape, lambda *i: function(x(*i), call.attrs), name=call.name
        )

    return compute


def _clip(x: Any, attrs: Any) -> Any:
    low, high = attrs["a_min"], attrs["a_max"]
    return M.clamp(x, _const(low, dtype_of(x)), _const(high, dtype_of(x)))


def _round(x: Any, attrs: Any) -> Any:
    """As the graph's own op rounds halves: Relax to even, Relay away from zero."""
    return M.round_even(x) if attrs["ties"] == "even" else M.round_away(x)


def _bias_add(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    x, bias = ins
    axis = call.attrs["axis"] % len(x.shape)
    return te.compute(x.shape, lambda *i: x(*i) + bias(i[axis]), name=call.name)


def _dense(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    x, weight = ins
    k = te.reduce_axis((0, int(x.shape[-1])), name="k")
    dtype = call.outputs[0].dtype
    return te.compute(
        call.outputs[0].shape,
        lambda *i: te.sum(x(*i[:-1], k).astype(dtype) * weight(i[-1], k).astype(dtype), axis=k),
        name=call.name,
    )


def _batch_matmul(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    a, b = ins
    turn_a, turn_b = call.attrs["transpose_a"], call.attrs["transpose_b"]
    k = te.reduce_axis((0, int(a.shape[-2 if turn_a else -1])), name="k")
    dtype = call.outputs[0].dtype

    def element(*i: Any) -> Any:
        batch, m, n = i[:-2], i[-2], i[-1]
        left = _broadcast(a, (*batch, k, m) if turn_a else (*batch, m, k))
        right = _broadcast(b, (*batch, n, k) if turn_b else (*batch, k, n))
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=k)

    return te.compute(call.outputs[0].shape, element, name=call.name)


def _reshape(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    return topi.reshape(ins[0], call.attrs["shape"])


def _split(ins: Sequence[Tensor], call: OpCall) -> list[Tensor]:
    (x,), axis = ins, call.attrs["axis"] % len(ins[0].shape)

    def part(index: int) -> Tensor:
        start = sum(v.shape[axis] for v in call.outputs[:index])
        return te.compute(
            call.outputs[index].shape,
            lambda *i: x(*(v + start if n == axis else v for n, v in enumerate(i))),
            name=f"{call.name}_{index}",
        )

    return [part(index) for index in range(len(call.outputs))]


def _transpose(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    (x,) = ins
    axes = call.attrs["axes"]
    shape = [x.shape[a] for a in axes]
    where = {a: i for i, a in enumerate(axes)}
    return te.compute(shape, lambda *i: x(*(i[where[a]] for a in range(len(axes)))), name=call.name)


def _concatenate(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    axis = call.attrs["axis"] % len(ins[0].shape)
    starts = [sum(int(t.shape[axis]) for t in ins[:n]) for n in range(len(ins))]

    def element(*i: Any) -> Any:
        def read(n: int) -> Any:
            return ins[n](*i[:axis], i[axis] - starts[n], *i[axis + 1 :])

        found = read(0)
        for n in range(1, len(ins)):
            found = tir.if_then_else(i[axis] >= starts[n], read(n), found)
        return found

    return te.compute(call.outputs[0].shape, element, name=call.name)


def _requantize(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """Fixed-point rescaling, bit for bit as Relay's qnn.requantize with rounding UPWARD."""
    from .quantize import fixed_point

    (x,) = ins
    a = call.attrs
    if "input_scale" not in a:
        raise UnsupportedOp(f"{call.name}: scales that differ by channel have no compute here")
    if a.get("rounding", "UPWARD") not in ("None", None, "UPWARD"):
        raise UnsupportedOp(
            f"{call.name}: rounding {a['rounding']!r}; only UPWARD has a compute here"
        )
    dtype = call.outputs[0].dtype
    low, high = tir.min_value(dtype), tir.max_value(dtype)
    multiplier, shift = fixed_point(a["input_scale"] / a["output_scale"])

    def element(*i: Any) -> Any:
        wide = x(*i).astype("int64") - _const(a["input_zero_point"], "int64")
        moved = wide * _const(multiplier, "int64") + _const(1 << (shift - 1), "int64")
        value = (moved >> _const(shift, "int64")) + _const(a["output_zero_point"], "int64")
        return tir.Max(tir.Min(value, high.astype("int64")), low.astype("int64")).astype(dtype)

    return te.compute(x.shape, element, name=call.name)


def _leaky_relu(x: Any, attrs: Any) -> Any:
    return tir.Select(x > 0, x, x * _const(attrs["alpha"], dtype_of(x)))


COMPUTE: dict[str, Compute] = {
    "abs": _elementwise(tir.abs),
    "add": _elementwise(lambda a, b: a + b),
    "avg_pool2d": avg_pool2d,
    "batch_matmul": _batch_matmul,
    "batch_norm": batch_norm,
    "bias_add": _bias_add,
    "broadcast_to": _elementwise(lambda a: a),
    "cast": _with_attrs(lambda x, a: x.astype(a["dtype"])),
    "clip": _with_attrs(_clip),
    "concatenate": _concatenate,
    "conv2d": conv2d,
    "dense": _dense,
    "divide": _elementwise(tir.div),
    "erf": _elementwise(M.erf),
    "exp": _elementwise(M.exp),
    "gelu": _elementwise(M.gelu),
    "global_avg_pool2d": global_avg_pool2d,
    "layer_norm": layer_norm,
    "leaky_relu": _with_attrs(_leaky_relu),
    "log": _elementwise(M.log),
    "lrn": lrn,
    "max": reduce("max"),
    "max_pool2d": max_pool2d,
    "maximum": _elementwise(tir.Max),
    "mean": reduce("mean"),
    "minimum": _elementwise(tir.Min),
    "multiply": _elementwise(lambda a, b: a * b),
    "negative": _elementwise(lambda a: tir.const(0, dtype_of(a)) - a),
    "power": _elementwise(te.power),
    # In this order a NaN stays one.
    "relu": _elementwise(lambda a: tir.Max(tir.const(0, dtype_of(a)), a)),
    "requantize": _requantize,
    "reshape": _reshape,
    "right_shift": _elementwise(lambda a, b: a >> b),
    "round": _with_attrs(_round),
    "rsqrt": _elementwise(te.rsqrt),
    "sigmoid": _elementwise(M.sigmoid),
    "silu": _elementwise(lambda a: a * M.sigmoid(a)),
    "softmax": softmax,
    "split": _split,
    "sqrt": _elementwise(te.sqrt),
    "subtract": _elementwise(lambda a, b: a - b),
    "sum": reduce("sum"),
    "tanh": _elementwise(M.tanh),
    "transpose": _transpose,
}  # fmt: skip


def compute_of(kind: str) -> Compute:
    """The compute of an op kind, or an error that names those there are."""
    if kind not in COMPUTE:
        raise UnsupportedOp(f"no compute for {kind!r}; known: {sorted(COMPUTE)}")
    return COMPUTE[kind]
