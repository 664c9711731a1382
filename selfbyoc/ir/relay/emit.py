"""Relay: emit a program of the vocabulary as an IRModule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import attrgetter

import numpy as np
from tvm import relay

from ...errors import UnsupportedOp
from ...ops.softmax import NAN_TOO
from ...ops.vocabulary import KINDS, written
from ...tvm import tvm
from ...tvm.types import Attr, Attrs, Expr, IRModule, PrimExpr, Span
from ..padding import pad_widths
from .register import call_of


def _gelu(x: Expr) -> Expr:
    half, one, root = (relay.const(v, dtype_of(x)) for v in (0.5, 1.0, math.sqrt(2)))
    return relay.multiply(relay.multiply(x, half), relay.add(relay.erf(relay.divide(x, root)), one))


def _gelu_tanh(x: Expr) -> Expr:
    half, one, three, factor, root = (
        relay.const(v, dtype_of(x)) for v in (0.5, 1.0, 3.0, 0.044715, math.sqrt(2 / math.pi))
    )
    inner = relay.add(x, relay.multiply(factor, relay.power(x, three)))
    bell = relay.tanh(relay.multiply(inner, root))
    return relay.multiply(relay.multiply(x, half), relay.add(bell, one))


def _requantize_call(x: Expr, **a: Attr) -> Expr:
    zero = a.get("input_zero_point", 0), a.get("output_zero_point", 0)
    return relay.qnn.op.requantize(
        x,
        relay.const(a["input_scale"], "float32"),
        relay.const(zero[0], "int32"),
        relay.const(a["output_scale"], "float32"),
        relay.const(zero[1], "int32"),
        # What the vocabulary's op means; left open, TVM rounds halves by the CPU.
        rounding=a["rounding"],
        compute_dtype="int64",
        out_dtype=a.get("out_dtype", "int8"),
    )


def _conv2d(x: Expr, w: Expr, pad_value: int = 0, **a: Attr) -> Expr:
    """relay.build wants channels and kernel_size written out (Conv2DWinogradRel, 0.17). What the
    padding holds where that is not zero: padded by an op before.
    """
    if pad_value:
        widths = pad_widths(a["data_layout"], a["padding"])
        x = relay.nn.pad(x, widths, pad_value=relay.const(pad_value, dtype_of(x)))
        a = {**a, "padding": (0, 0, 0, 0)}
    extents = [int(e) for e in relay.transform.InferTypeLocal(w).shape]
    letters = [letter.upper() for letter in a["kernel_layout"] if letter.isalpha()]
    shape = dict.fromkeys(letters, 1)
    for letter, extent in zip(letters, extents, strict=True):
        shape[letter] *= extent
    size = {"channels": shape["O"], "kernel_size": (shape["H"], shape["W"])}
    return relay.nn.conv2d(x, w, **{**a, **size, "out_dtype": a["out_dtype"] or ""})


def _transposed(x: Expr, w: Expr, **a: Attr) -> Expr:
    """0.17's schedules want channels and kernel_size."""
    kernel = [int(e) for e in relay.transform.InferTypeLocal(w).shape]
    size = {"channels": kernel[1] * a["groups"], "kernel_size": tuple(kernel[2:])}
    a = {**a, **size, "out_dtype": a["out_dtype"] or ""}
    if len(kernel) == 4:
        return relay.nn.conv2d_transpose(x, w, **a)
    one = {name: (a[name][1],) for name in ("strides", "output_padding", "dilation")}
    return relay.nn.conv1d_transpose(x, w, **{**a, **one, "padding": a["padding"][1::2]})


def _batch_matmul(x: Expr, y: Expr, **a: Attr) -> Expr:
    return relay.nn.batch_matmul(x, y, **{**a, "out_dtype": a["out_dtype"] or ""})


def _dense(x: Expr, w: Expr, out_dtype: str | None) -> Expr:
    """0.17 infers a type for any two shapes; the kernel would then read beyond a row."""
    ours, theirs = (list(relay.transform.InferTypeLocal(e).shape) for e in (x, w))
    fits = len(theirs) == 2 and len(ours) > 0
    if fits and isinstance(ours[-1], tvm.tir.IntImm) and isinstance(theirs[1], tvm.tir.IntImm):
        fits = int(ours[-1]) == int(theirs[1])
    if not fits:
        raise ValueError(f"expected a weight [units, {ours[-1] if ours else 'in'}], found {theirs}")
    return relay.nn.dense(x, w, out_dtype=out_dtype or "")


def _softmax(x: Expr, axis: int, guarded: bool | str = False) -> Expr:
    """Where it is guarded, rows of -inf alone give zeros; against NaN too, what would be NaN."""
    found = relay.nn.softmax(x, axis)
    if not guarded:
        return found
    zero, least = (relay.const(value, dtype_of(x)) for value in (0.0, float("-inf")))
    if guarded == NAN_TOO:
        return relay.where(relay.equal(found, found), found, zero)
    is_empty = relay.equal(relay.max(x, axis, keepdims=True), least)
    return relay.where(is_empty, zero, found)


def _rounding(name: str, function: Callable[..., Expr]) -> Callable[..., Expr]:
    """An op that TVM rounds halves away from zero by; the vocabulary's says how it was read."""

    def write(*args: Expr, ties: str = "away", **attrs: Attr) -> Expr:
        if ties != "away":
            raise UnsupportedOp(f"op.{name}: ties={ties!r}; Relay rounds halves away from zero")
        return function(*args, **attrs)

    return write


def _hard_swish(x: Expr) -> Expr:
    three, six = (relay.const(value, dtype_of(x)) for value in (3.0, 6.0))
    gate = relay.clip(relay.add(x, three), 0, 6)
    return relay.divide(relay.multiply(x, gate), six)


def _rms_norm(x: Expr, gamma: Expr, axis: int, epsilon: float) -> Expr:
    ndim = len(relay.transform.InferTypeLocal(x).shape)
    squares = relay.mean(relay.multiply(x, x), axis=axis, keepdims=True)
    factor = relay.rsqrt(relay.add(squares, relay.const(epsilon, dtype_of(x))))
    behind = ndim - 1 - axis % ndim
    along = relay.expand_dims(gamma, axis=1, num_newaxis=behind) if behind else gamma
    return relay.multiply(relay.multiply(x, factor), along)


# Kinds that are not written as a call of their form's function with the kind's attributes.
WRITE: dict[str, Callable[..., Expr]] = {
    "batch_matmul": _batch_matmul,
    "batch_norm": lambda *args, **a: relay.nn.batch_norm(*args, **a).astuple(),
    "broadcast_to": lambda x, shape: relay.broadcast_to(x, shape),
    "concatenate": lambda *xs, axis: relay.concatenate(list(xs), axis),
    "conv1d_transpose": _transposed,
    "conv2d": _conv2d,
    "conv2d_transpose": _transposed,
    "dense": _dense,
    "dequantize": lambda *args, **a: relay.qnn.op.dequantize(*args, **a),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "hard_swish": _hard_swish,
    "nn.pad": lambda x, value, **a: relay.nn.pad(x, pad_value=value, **a),
    "quantize": _rounding("quantize", lambda *args, **a: relay.qnn.op.quantize(*args, **a)),
    "requantize": _requantize_call,
    "reshape": lambda x, shape: relay.reshape(x, shape),
    "rms_norm": _rms_norm,
    "round": _rounding("round", relay.round),
    "silu": lambda x: relay.multiply(x, relay.sigmoid(x)),
    "softmax": _softmax,
    "tile": lambda x, repeats: relay.tile(x, repeats),
}


def function_of(kind: str) -> Callable[..., Expr] | None:
    """What writes a kind: a function of its own, or a call of its first form."""
    if kind in WRITE or kind not in KINDS or not KINDS[kind].relay:
        return WRITE.get(kind)
    name = KINDS[kind].relay[0].name
    try:
        return attrgetter(name)(relay)
    except AttributeError:  # an op without a function: one of a user's
        is_list = KINDS[kind].inputs is None
        return lambda *args, **attrs: call_of(name, args, attrs, is_list=is_list)


def constant(array: np.ndarray) -> Expr:
    """A NumPy array as a constant of the IR: without its dtype, 0.17 narrows 64 bits to 32."""
    return relay.const(array, str(array.dtype))


def open_extent(_: str) -> PrimExpr:
    """A size that is open."""
    return relay.Any()


def dtype_of(expr: Expr) -> str:
    """The dtype of an emitted tensor."""
    return str(relay.transform.InferTypeLocal(expr).dtype)


def type_of(expr: Expr) -> str:
    """As errors have it: `float32[3, 5]`."""
    found = relay.transform.InferTypeLocal(expr)
    shape = getattr(found, "shape", None)
    return (
        str(found)
        if shape is None
        else f"{found.dtype}[{', '.join(str(getattr(e, 'value', e)) for e in shape)}]"
    )


def emit_call(kind: str, args: list[Expr], attrs: Attrs, span: Span = None) -> Expr:
    """One op of the vocabulary as a Relay expression."""
    function = function_of(kind)
    if function is None:
        known = [name for name in written() if function_of(name)]
        raise UnsupportedOp(f"op.{kind} cannot be written in Relay; known: {known}")
    made = function(*args, **attrs)
    if span is None or not isinstance(made, relay.Call):
        return made
    return relay.Call(made.op, made.args, made.attrs, made.type_args, span)


def emit_item(of: Expr, index: int) -> Expr:
    """One output of an op that has several."""
    return relay.TupleGetItem(
        of.tuple_value if isinstance(of, relay.expr.TupleWrapper) else of, index
    )


def emit_module(
    params: Mapping[str, tuple[tuple[int, ...], str]], body: Callable[..., list[Expr]]
) -> IRModule:
    """`main` with these parameters; `body(**variables)` returns one expression or several."""
    variables = {name: relay.var(name, shape=s, dtype=d) for name, (s, d) in params.items()}
    found = body(**variables)
    root = relay.Tuple(list(found)) if len(found) > 1 else found[0]
    mod = tvm.IRModule.from_expr(relay.Function(list(variables.values()), root))
    return relay.transform.InferType()(mod)
