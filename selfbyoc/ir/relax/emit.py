"""Relax: emit a program of the vocabulary as an IRModule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

import numpy as np
from tvm import relax

from ...errors import UnsupportedOp
from ...ops.softmax import NAN_TOO
from ...ops.vocabulary import KINDS, written
from ...tvm import tir
from ...tvm.types import Attr, Attrs, BlockBuilder, Expr, IRModule, PrimExpr, Span
from ..padding import pad_widths
from . import Constant
from .register import call_of


def _bias_add(x: Expr, bias: Expr, axis: int) -> Expr:
    ndim = x.ty.ndim
    shape = [1] * ndim
    shape[axis] = int(bias.ty.shape[0])
    return relax.op.add(x, relax.op.reshape(bias, shape) if axis % ndim != ndim - 1 else bias)


def _batch_matmul(x: Expr, y: Expr, transpose_a: bool, transpose_b: bool, out_dtype: Attr) -> Expr:
    def transposed(v: Expr) -> Expr:
        n = v.ty.ndim
        return relax.op.permute_dims(v, [*range(n - 2), n - 1, n - 2])

    x, y = transposed(x) if transpose_a else x, transposed(y) if transpose_b else y
    return relax.op.matmul(x, y, out_dtype=out_dtype)


def _layer_norm_call(x: Expr, gamma: Expr, beta: Expr, axis: int, epsilon: float) -> Expr:
    return relax.op.nn.layer_norm(x, gamma, beta, axes=axis, epsilon=epsilon)


def _hard_swish(x: Expr) -> Expr:
    three, six = (relax.const(value, x.ty.dtype) for value in (3.0, 6.0))
    gate = relax.op.clip(relax.op.add(x, three), 0, 6)
    return relax.op.divide(relax.op.multiply(x, gate), six)


def _rms_norm(x: Expr, gamma: Expr, axis: int, epsilon: float) -> Expr:
    return relax.op.nn.rms_norm(x, gamma, axes=axis, epsilon=epsilon)


def _conv1d_transpose(x: Expr, w: Expr, **a: Attr) -> Expr:
    one = {name: a[name][1] for name in ("strides", "output_padding", "dilation")}
    return relax.op.nn.conv1d_transpose(x, w, **{**a, **one, "padding": list(a["padding"][1::2])})


def _conv2d(x: Expr, w: Expr, pad_value: int = 0, **a: Attr) -> Expr:
    """What the padding holds where that is not zero: padded by an op before."""
    if not pad_value:
        return relax.op.nn.conv2d(x, w, **a)
    widths = pad_widths(a["data_layout"], a["padding"])
    x = relax.op.nn.pad(x, [n for pair in widths for n in pair], "constant", pad_value)
    return relax.op.nn.conv2d(x, w, **{**a, "padding": (0, 0, 0, 0)})


def _softmax(x: Expr, axis: int, guarded: bool | str = False) -> Expr:
    """Where it is guarded, rows of -inf alone give zeros; against NaN too, what would be NaN."""
    found = relax.op.nn.softmax(x, axis)
    if not guarded:
        return found
    zero, least = (relax.const(value, x.ty.dtype) for value in (0.0, float("-inf")))
    if guarded == NAN_TOO:
        return relax.op.where(relax.op.equal(found, found), found, zero)
    is_empty = relax.op.equal(relax.op.max(x, axis, keepdims=True), least)
    return relax.op.where(is_empty, zero, found)


def _rounding(name: str, function: Callable[..., Expr]) -> Callable[..., Expr]:
    """An op that TVM rounds halves to even by; the vocabulary's says how it was read."""

    def write(*args: Expr, ties: str = "even", **attrs: Attr) -> Expr:
        if ties != "even":
            raise UnsupportedOp(f"op.{name}: ties={ties!r}; Relax rounds halves to even")
        return function(*args, **attrs)

    return write


# Kinds that are not written as a call of their form's function with the kind's attributes.
WRITE: dict[str, Callable[..., Expr]] = {
    "batch_matmul": _batch_matmul,
    # Relax's default is training=True, which normalises with the batch's own statistics.
    "batch_norm": lambda *args, **a: relax.op.nn.batch_norm(*args, training=False, **a),
    "bias_add": _bias_add,
    "clip": lambda x, a_min, a_max: relax.op.clip(x, a_min, a_max),
    "concatenate": lambda *xs, axis: relax.op.concat(list(xs), axis),
    "conv1d_transpose": _conv1d_transpose,
    "conv2d": _conv2d,
    "dense": lambda x, w, out_dtype: relax.op.matmul(
        x, relax.op.permute_dims(w), out_dtype=out_dtype
    ),
    "global_avg_pool2d": lambda x, layout: relax.op.nn.adaptive_avg_pool2d(x, (1, 1), layout),
    "hard_swish": _hard_swish,
    "layer_norm": _layer_norm_call,
    "nn.pad": lambda x, pad_width, pad_mode, pad_value: relax.op.nn.pad(
        x, [n for pair in pad_width for n in pair], pad_mode, pad_value
    ),
    "quantize": _rounding("quantize", lambda *args, **a: relax.op.quantize(*args, **a)),
    "rms_norm": _rms_norm,
    "round": _rounding("round", relax.op.round),
    "softmax": _softmax,
    "stack": lambda *xs, axis: relax.op.stack(list(xs), axis),
}


def function_of(kind: str) -> Callable[..., Expr] | None:
    """What writes a kind: a function of its own, or a call of its first form."""
    if kind in WRITE or kind not in KINDS or not KINDS[kind].relax:
        return WRITE.get(kind)
    name = KINDS[kind].relax[0].name
    try:
        return attrgetter(name)(relax.op)
    except AttributeError:  # an op without a function: one of a user's
        is_list = KINDS[kind].inputs is None
        return lambda *args, **attrs: call_of(name, args, attrs, is_list=is_list)


def constant(array: np.ndarray) -> Expr:
    """A NumPy array as a constant of the IR."""
    return relax.const(array, str(array.dtype))


def open_extent(name: str) -> PrimExpr:
    """A size that is open."""
    return tir.Var(name, "int64")


def dtype_of(expr: Expr) -> str:
    """The dtype of an emitted tensor."""
    return str(relax.BlockBuilder.current().normalize(expr).ty.dtype)


def type_of(expr: Expr) -> str:
    """As errors have it: `float32[3, 5]`."""
    found = relax.BlockBuilder.current().normalize(expr).ty
    shape = getattr(found, "shape", None)
    return (
        str(found)
        if shape is None
        else f"{found.dtype}[{', '.join(str(getattr(e, 'value', e)) for e in shape)}]"
    )


def emit_call(kind: str, args: list[Expr], attrs: Attrs, span: Span = None) -> Expr:
    """One op of the vocabulary, bound to a variable of the function under construction."""
    block = relax.BlockBuilder.current()
    made = emitted(block, kind, args, attrs)
    if span is not None and isinstance(made, relax.Call):
        made = relax.Call(made.op, made.args, made.attrs, made.ty_args, span)
    return block.emit(block.normalize(made))


def emitted(block: BlockBuilder, kind: str, args: Sequence[Expr], attrs: Attrs) -> Expr:
    """One op of the vocabulary, for a block to normalise and bind."""
    function = function_of(kind)
    if function is None:
        known = [name for name in written() if function_of(name)]
        raise UnsupportedOp(f"op.{kind} cannot be written in Relax; known: {known}")
    # Constants need a type before an op can read their rank.
    return function(*(block.normalize(a) if isinstance(a, Constant) else a for a in args), **attrs)


def emit_item(of: Expr, index: int) -> Expr:
    """One output of an op that has several."""
    return relax.BlockBuilder.current().emit(relax.TupleGetItem(of, index))


def emit_module(
    params: Mapping[str, tuple[tuple[int, ...], str]], body: Callable[..., list[Expr]]
) -> IRModule:
    """`main` with these parameters; `body(**variables)` returns one expression or several."""
    builder = relax.BlockBuilder()
    variables = {name: relax.Var(name, relax.TensorType(s, d)) for name, (s, d) in params.items()}
    with builder.function("main", list(variables.values())):
        with builder.dataflow():
            found = body(**variables)
            root = builder.emit_output(relax.Tuple(list(found)) if len(found) > 1 else found[0])
        builder.emit_func_output(root)
    return builder.get()
