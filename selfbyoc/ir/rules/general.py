"""The rules of canonicalisation: each looks at one op and may say what it really is.

A rule returns the ops that stand in for the call and the ops that it absorbed, or None. The table
of what is read as what stands in canonical.py.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph import OpCall, Value
from .activation import clip, clip_of_clip, gelu, relu, silu
from .declared import declared
from .gelu_tanh import gelu_tanh
from .half_weights import half_factor, half_weight
from .hard_swish import hard_swish
from .identity import identity_before, identity_behind
from .layer_norm import layer_norm, rms_norm
from .lrn import local_response
from .padded import padded_conv2d
from .products import batch_matmul, dense, repeated_matrix, turned_operand
from .rewriter import Rewrite, Rewriter, Rule, absorb, either_order
from .rows import merged_rows
from .softmax import guarded_softmax
from .transposes import transposed_twice

CONVOLUTIONS = frozenset({"conv2d", "conv2d_transpose", "conv1d_transpose"})
HEAVY = frozenset({*CONVOLUTIONS, "dense", "batch_matmul"})


def _bias_axis(heavy: OpCall, data: Value, bias: Value) -> int | None:
    """The channel axis of an op's result, if `bias` is broadcast along just that one."""
    if not bias.is_static or bias.ndim > data.ndim:
        return None
    shape = (1,) * (data.ndim - bias.ndim) + bias.shape
    is_conv = heavy.kind in CONVOLUTIONS
    axis = heavy.attrs["out_layout"].index("C") if is_conv else data.ndim - 1
    others = shape[:axis] + shape[axis + 1 :]
    return axis if shape[axis] == data.shape[axis] and set(others) <= {1} else None


def _bias_add(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "add":
        return None
    for data, bias in either_order(call):
        heavy = rw.producer(data)
        # A bias is data, never computed from activations: only a reshape or cast may be before it.
        if heavy is None or heavy.kind not in HEAVY:
            _decline_between(rw, call, data, bias)
            continue
        absorbed: list[OpCall] = []
        axis = _bias_axis(heavy, data, bias)
        if axis is not None and bias.shape == data.shape and _is_column(rw, bias):
            return _finish_bias(rw, call, data, bias, axis, absorbed)
        if bias.shape == data.shape or axis is None:
            spread = rw.producer(bias, "broadcast_to")
            if spread is None or not rw.read_once(bias):
                _decline_bias(rw, call, heavy, bias)
                continue
            absorbed, bias = [spread], spread.inputs[0]
            axis = _bias_axis(heavy, data, bias)
        if axis is None or not _is_data(rw, bias):
            _decline_bias(rw, call, heavy, bias)
            continue
        return _finish_bias(rw, call, data, bias, axis, absorbed)
    return None


def _is_data(rw: Rewriter, bias: Value) -> bool:
    """Whether nothing computes it but an op that changes its shape or its dtype."""
    shaping = rw.producer(bias)
    if shaping is not None and shaping.kind == "cast":
        return rw.producer(shaping.inputs[0]) is None
    return shaping is None or shaping.kind == "reshape"


def _is_column(rw: Rewriter, bias: Value) -> bool:
    """Whether an importer made this shape out of a bias of one axis: where the result has one
    element a channel, only that tells it from a residual, also in a function that was cut out.
    """
    shaping = rw.producer(bias, "reshape")
    return shaping is not None and shaping.inputs[0].ndim == 1 and rw.read_once(bias)


def _decline_between(rw: Rewriter, call: OpCall, data: Value, bias: Value) -> None:
    """An op between a convolution or product and what would be its bias."""
    between = rw.producer(data)
    heavy = rw.producer(between.inputs[0]) if between is not None and between.inputs else None
    if between is None or heavy is None or heavy.kind not in HEAVY or rw.producer(bias) is not None:
        return
    same = between.outputs[0].ndim == heavy.outputs[0].ndim
    if same and bias.scalar is None and _bias_axis(heavy, data, bias) is not None:
        rw.decline(call, "bias_add", f"{between.name} lies between {heavy.name} and {call.name}")


def _decline_bias(rw: Rewriter, call: OpCall, heavy: OpCall, bias: Value) -> None:
    """Why what is added to a convolution or product is no bias; a residual needs no reason."""
    shaping = rw.producer(bias)
    if shaping is None and bias.shape == heavy.outputs[0].shape:
        if _bias_axis(heavy, heavy.outputs[0], bias) is not None:
            text = f"{bias.name or 'a constant'} has the shape of {heavy.name}'s whole result"
            why = f"{text}, {bias.type}, so it is taken for a residual; give a bias one axis"
            rw.decline(call, "bias_add", why)
        return
    if shaping is not None and shaping.kind not in ("reshape", "broadcast_to"):
        if bias.shape != heavy.outputs[0].shape:
            text = f"what is added to {heavy.name} is computed by {shaping.name}, so it is no bias"
            rw.decline(call, "bias_add", text)
        return
    readers = [u.name for u in rw.graph.users(bias) if u is not call]
    if shaping is not None and readers:
        text = f"{shaping.name} before {call.name} is read by {', '.join(readers)} too"
    elif shaping is not None:
        text = f"an importer's {shaping.name} lies before {call.name}"
    else:
        text = f"{call.name} adds {bias.name or 'a constant'} to {heavy.name}"
    shape = f"its shape {list(bias.shape)} is no bias of {heavy.outputs[0].type}"
    rw.decline(call, "bias_add", text if readers else f"{text}: {shape}")


def _finish_bias(
    rw: Rewriter, call: OpCall, data: Value, bias: Value, axis: int, absorbed: list[OpCall]
) -> Rewrite:
    """Bring the bias to one axis: see through the importer's reshape, or add a reshape of ours."""
    stand_in: list[OpCall] = []
    shaping = rw.producer(bias, "reshape")
    if shaping is not None and _is_column(rw, bias):
        absorbed, bias = [shaping, *absorbed], shaping.inputs[0]
    elif bias.ndim != 1:
        flat = replace(bias, shape=(data.shape[axis],), name=f"{bias.name}_flat")
        stand_in.append(OpCall("reshape", (bias,), {"shape": flat.shape}, (flat,)))
        bias = flat
    done = absorb(
        call, absorbed,
        kind="bias_add", inputs=(data, bias), attrs={"axis": axis}, needs_product=True,
    )  # fmt: skip
    return [*stand_in, done], absorbed


_OF_TWO = {"sum": "add", "max": "maximum", "min": "minimum"}


def _of_two(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """ONNX Sum, Max and Min of two tensors, which Relax's importer writes with a stack."""
    stacked = rw.producer(call.inputs[0], "stack") if call.kind in _OF_TWO else None
    if stacked is None or len(stacked.inputs) != 2 or not rw.read_once(call.inputs[0]):
        return None
    if stacked.attrs["axis"] != 0 or call.attrs["axis"] not in (0, (0,)) or call.attrs["keepdims"]:
        return None
    absorbed, terms = [stacked], []
    for term in stacked.inputs:
        spread = rw.producer(term, "broadcast_to")
        if spread is not None and rw.read_once(term):
            absorbed.insert(0, spread)
            term = spread.inputs[0]
        terms.append(term)
    return [
        absorb(call, absorbed, kind=_OF_TWO[call.kind], inputs=tuple(terms), attrs={})
    ], absorbed


_PIXELS: dict[tuple[int, ...], str] = {(2, 3): "NCHW", (1, 2): "NHWC"}


def _global_pool(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "mean" or call.inputs[0].ndim != 4:
        return None
    axes = call.attrs["axis"]
    axes = (axes,) if isinstance(axes, int) else axes or ()
    layout = _PIXELS.get(tuple(sorted(a % 4 for a in axes)))
    if layout is None or not call.attrs["keepdims"]:
        text = f"a mean over axis={axes} with keepdims={call.attrs['keepdims']}"
        rw.decline(call, "global_avg_pool2d", f"{text}, not over (2, 3) with True")
        return None
    return [replace(call, kind="global_avg_pool2d", attrs={"layout": layout})], []


def _requantize(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """Scales and zero points as attributes, where they are scalar constants. Scales by channel are
    another op since the model was simplified (simplify/relay/requantised.py).
    """
    scales = call.inputs[1:]
    if call.kind != "requantize" or not scales:
        return None
    if any(v.scalar is None for v in scales):
        text = "its scales and zero points are not all constants of one element"
        rw.decline(call, "requantize", text)
        return None
    names = ("input_scale", "input_zero_point", "output_scale", "output_zero_point")
    attrs = {**call.attrs, **{n: v.scalar for n, v in zip(names, scales, strict=True)}}
    return [replace(call, inputs=call.inputs[:1], attrs=attrs)], []


def _symmetric_conv2d(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """qnn.conv2d(x, weight, zero points, scales) with zero points of 0 is a plain integer
    conv2d.
    """
    if call.kind != "qnn_conv2d":
        return None
    points = [v.scalar for v in call.inputs[2:4]]
    if points != [0, 0]:
        rw.decline(call, "conv2d", f"its zero points are {points}, not constants of 0")
        return None
    outputs = call.attrs["out_layout"].index("C"), call.attrs["kernel_layout"].index("O")
    if call.outputs[0].shape[outputs[0]] != call.inputs[1].shape[outputs[1]]:
        rw.decline(call, "conv2d", "its weight is [channels, multiplier]")
        return None
    return [replace(call, kind="conv2d", inputs=call.inputs[:2])], []


RULES: tuple[Rule, ...] = (
    identity_behind,
    identity_before,
    transposed_twice,
    repeated_matrix,
    dense,
    batch_matmul,
    half_factor,
    turned_operand,
    half_weight,
    _requantize,
    _symmetric_conv2d,
    padded_conv2d,
    _bias_add,
    silu,
    hard_swish,
    gelu,
    gelu_tanh,
    relu,
    clip,
    clip_of_clip,
    layer_norm,
    rms_norm,
    merged_rows,
    guarded_softmax,
    local_response,
    _of_two,
    _global_pool,
    declared,
)
