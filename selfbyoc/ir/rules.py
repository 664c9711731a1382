"""The rules of canonicalisation: each looks at one op and may say what it really is.

A rule returns the ops that stand in for the call and the ops that it absorbed, or None. The table
of what is read as what stands in canonical.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from .graph import OpCall, OpGraph, Value

HEAVY = frozenset({"conv2d", "dense", "batch_matmul"})


class Rewriter:
    """What rules ask of the graph: who computes a value, and who else reads it."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph

    def producer(self, value: Value, kind: str | None = None) -> OpCall | None:
        """The op that computes the value, if it is of this kind."""
        call = self.graph.producer(value)
        return call if call is not None and kind in (None, call.kind) else None

    def only_reader(self, value: Value) -> bool:
        """Whether the value has a single reader and is not returned, so that its op can be
        absorbed.
        """
        return len(self.graph.users(value)) == 1 and not self.graph.is_output(value)


# What a rule returns: the ops that stand in for the call, and the ops that it absorbed.
Rewrite = tuple[list[OpCall], list[OpCall]]
Rule = Callable[[Rewriter, OpCall], "Rewrite | None"]


def _absorb(call: OpCall, absorbed: list[OpCall], **changes: object) -> OpCall:
    """`call` changed, with the IR nodes of the absorbed ops among its own."""
    sources = tuple(s for other in absorbed for s in other.sources) + call.sources
    return replace(call, sources=sources, **changes)  # type: ignore[arg-type]


def _scalar(value: Value, wanted: float) -> bool:
    return value.scalar is not None and math.isclose(float(value.scalar), wanted, rel_tol=1e-4)


def _either_order(call: OpCall) -> list[tuple[Value, Value]]:
    return [(call.inputs[0], call.inputs[1]), (call.inputs[1], call.inputs[0])]


def _bias_axis(heavy: OpCall, data: Value, bias: Value) -> int | None:
    """The channel axis of an op's result, if `bias` is broadcast along just that one."""
    if not (data.is_static and bias.is_static) or bias.ndim > data.ndim:
        return None
    shape = (1,) * (data.ndim - bias.ndim) + bias.shape
    axis = heavy.attrs["out_layout"].index("C") if heavy.kind == "conv2d" else data.ndim - 1
    others = shape[:axis] + shape[axis + 1 :]
    return axis if shape[axis] == data.shape[axis] and set(others) <= {1} else None


def _bias_add(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "add":
        return None
    for data, bias in _either_order(call):
        heavy = rw.producer(data)
        # A bias is data, never computed from activations: only re-shaping ops may stand before it.
        if heavy is None or heavy.kind not in HEAVY:
            continue
        absorbed: list[OpCall] = []
        axis = _bias_axis(heavy, data, bias)
        if bias.shape == data.shape or axis is None:
            spread = rw.producer(bias, "broadcast_to")
            if spread is None or not rw.only_reader(bias):
                continue
            absorbed, bias = [spread], spread.inputs[0]
            axis = _bias_axis(heavy, data, bias)
        if axis is None or rw.producer(bias) not in (None, rw.producer(bias, "reshape")):
            continue
        return _finish_bias(rw, call, data, bias, axis, absorbed)
    return None


def _finish_bias(
    rw: Rewriter, call: OpCall, data: Value, bias: Value, axis: int, absorbed: list[OpCall]
) -> Rewrite:
    """Bring the bias to one axis: see through the importer's reshape, or add a reshape of ours."""
    stand_in: list[OpCall] = []
    shaping = rw.producer(bias, "reshape")
    if shaping is not None and shaping.inputs[0].ndim == 1 and rw.only_reader(bias):
        absorbed, bias = [shaping, *absorbed], shaping.inputs[0]
    elif bias.ndim != 1:
        flat = replace(bias, shape=(data.shape[axis],), name=f"{bias.name}_flat")
        stand_in.append(OpCall("reshape", (bias,), {"shape": flat.shape}, (flat,)))
        bias = flat
    done = _absorb(call, absorbed, kind="bias_add", inputs=(data, bias), attrs={"axis": axis})
    return [*stand_in, done], absorbed


def _dense(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """matmul with a matrix on the right; the weight of `dense` is [units, in]."""
    if call.kind != "matmul" or call.inputs[1].ndim != 2 or call.inputs[0].ndim < 2:
        return None
    data, weight = call.inputs
    attrs = {"out_dtype": call.attrs.get("out_dtype") or call.outputs[0].dtype}
    turned = rw.producer(weight, "transpose")
    if turned is not None and rw.only_reader(weight):
        done = _absorb(call, [turned], kind="dense", inputs=(data, turned.inputs[0]), attrs=attrs)
        return [done], [turned]
    flipped = replace(weight, shape=weight.shape[::-1], name=f"{weight.name}_t")
    turn = OpCall("transpose", (weight,), {"axes": (1, 0)}, (flipped,))
    return [turn, replace(call, kind="dense", inputs=(data, flipped), attrs=attrs)], []


def _batch_matmul(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """matmul of batches; transposed operands are the next rule's."""
    if call.kind != "matmul" or call.inputs[1].ndim < 3:
        return None
    attrs = {"transpose_a": False, "transpose_b": False, "out_dtype": call.outputs[0].dtype}
    return [replace(call, kind="batch_matmul", attrs=attrs)], []


def _turned_operand(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """batch_matmul of an operand whose last two axes were transposed just before."""
    if call.kind != "batch_matmul":
        return None
    for i, name in enumerate(("transpose_a", "transpose_b")):
        turned = rw.producer(call.inputs[i], "transpose")
        ndim = call.inputs[i].ndim
        swap = (*range(ndim - 2), ndim - 1, ndim - 2)
        if turned is None or not turned.sources or not rw.only_reader(call.inputs[i]):
            continue
        if tuple(turned.attrs["axes"]) == swap:
            inputs = [*call.inputs[:i], turned.inputs[0], *call.inputs[i + 1 :]]
            attrs = {**call.attrs, name: not call.attrs[name]}
            return [_absorb(call, [turned], inputs=tuple(inputs), attrs=attrs)], [turned]
    return None


def _silu(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "multiply":
        return None
    for x, gate in _either_order(call):
        sigmoid = rw.producer(gate, "sigmoid")
        if sigmoid is not None and sigmoid.inputs[0] is x and rw.only_reader(gate):
            return [_absorb(call, [sigmoid], kind="silu", inputs=(x,), attrs={})], [sigmoid]
    return None


def _relu(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "maximum":
        return None
    for x, zero in _either_order(call):
        if zero.scalar == 0 and x.shape == call.outputs[0].shape:
            return [replace(call, kind="relu", inputs=(x,), attrs={})], []
    return None


def _factors(rw: Rewriter, value: Value, absorbed: list[OpCall]) -> list[Value]:
    """The factors of a product of single-use multiplications; the ops taken apart go to
    `absorbed`.
    """
    call = rw.producer(value, "multiply")
    if call is None or not rw.only_reader(value):
        return [value]
    absorbed.append(call)
    return [f for v in call.inputs for f in _factors(rw, v, absorbed)]


def _gelu_gate(rw: Rewriter, value: Value, x: Value) -> list[OpCall] | None:
    """The ops of `1 + erf(x / sqrt 2)`, if that is what computes the value."""
    plus = rw.producer(value, "add")
    if plus is None or not rw.only_reader(value):
        return None
    erf = next((e for v in plus.inputs if (e := rw.producer(v, "erf"))), None)
    if erf is None or not any(_scalar(v, 1.0) for v in plus.inputs):
        return None
    inner = rw.producer(erf.inputs[0])
    if inner is None or not (rw.only_reader(erf.outputs[0]) and rw.only_reader(erf.inputs[0])):
        return None
    by_division = (
        inner.kind == "divide" and inner.inputs[0] is x and _scalar(inner.inputs[1], math.sqrt(2))
    )
    by_product = inner.kind == "multiply" and any(
        v is x and _scalar(other, math.sqrt(0.5)) for v, other in _either_order(inner)
    )
    return [inner, erf, plus] if by_division or by_product else None


def _gelu(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "multiply":
        return None
    absorbed: list[OpCall] = []
    factors = [f for v in call.inputs for f in _factors(rw, v, absorbed)]
    half = [f for f in factors if _scalar(f, 0.5)]
    rest = [f for f in factors if not _scalar(f, 0.5)]
    if len(half) != 1 or len(rest) != 2:
        return None
    for x, gate in ((rest[0], rest[1]), (rest[1], rest[0])):
        gate_ops = _gelu_gate(rw, gate, x)
        if gate_ops is not None:
            gone = [*gate_ops, *absorbed]
            return [_absorb(call, gone, kind="gelu", inputs=(x,), attrs={})], gone
    return None


def _sum_of_two(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """ONNX Sum of two tensors, which Relax's importer writes with a stack."""
    stacked = rw.producer(call.inputs[0], "stack") if call.kind == "sum" else None
    if stacked is None or len(stacked.inputs) != 2 or not rw.only_reader(call.inputs[0]):
        return None
    if stacked.attrs["axis"] != 0 or call.attrs["axis"] not in (0, (0,)) or call.attrs["keepdims"]:
        return None
    absorbed, terms = [stacked], []
    for term in stacked.inputs:
        spread = rw.producer(term, "broadcast_to")
        if spread is not None and rw.only_reader(term):
            absorbed.insert(0, spread)
            term = spread.inputs[0]
        terms.append(term)
    return [_absorb(call, absorbed, kind="add", inputs=tuple(terms), attrs={})], absorbed


def _global_pool(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "mean" or call.inputs[0].ndim != 4 or not call.attrs["keepdims"]:
        return None
    if sorted(a % 4 for a in call.attrs["axis"] or ()) != [2, 3]:
        return None
    return [replace(call, kind="global_avg_pool2d", attrs={"layout": "NCHW"})], []


def _requantize(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """Scales and zero points as attributes, where they are scalar constants."""
    scales = call.inputs[1:]
    if call.kind != "requantize" or not scales or any(v.scalar is None for v in scales):
        return None
    names = ("input_scale", "input_zero_point", "output_scale", "output_zero_point")
    attrs = {**call.attrs, **{n: v.scalar for n, v in zip(names, scales, strict=True)}}
    return [replace(call, inputs=call.inputs[:1], attrs=attrs)], []


def _symmetric_conv2d(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """qnn.conv2d(x, weight, zero points, scales) with zero points of 0 is a plain integer
    conv2d.
    """
    if call.kind != "qnn_conv2d" or any(v.scalar != 0 for v in call.inputs[2:4]):
        return None
    return [replace(call, kind="conv2d", inputs=call.inputs[:2])], []


RULES: tuple[Rule, ...] = (
    _dense,
    _batch_matmul,
    _turned_operand,
    _requantize,
    _symmetric_conv2d,
    _bias_add,
    _silu,
    _gelu,
    _relu,
    _sum_of_two,
    _global_pool,
)
