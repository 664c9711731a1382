"""Rules of canonicalisation: activations that importers take apart."""

from __future__ import annotations

import math
from dataclasses import replace

from ...graph import OpCall, Value
from .rewriter import Rewrite, Rewriter, absorb, either_order, is_scalar


def silu(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "multiply":
        return None
    for x, gate in either_order(call):
        sigmoid = rw.producer(gate, "sigmoid")
        if sigmoid is not None and sigmoid.inputs[0] is x and rw.only_reader(gate):
            return [absorb(call, [sigmoid], kind="silu", inputs=(x,), attrs={})], [sigmoid]
        if sigmoid is not None:
            same = sigmoid.inputs[0] is x
            text = "is read elsewhere too" if same else f"is of {sigmoid.inputs[0].name}"
            rw.decline(call, "silu", f"{sigmoid.name} {text}")
    return None


def relu(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "maximum":
        return None
    for x, zero in either_order(call):
        if zero.scalar == 0 and x.shape == call.outputs[0].shape:
            return [replace(call, kind="relu", inputs=(x,), attrs={})], []
        if zero.scalar is not None:
            rw.decline(call, "relu", f"it is the maximum with {zero.scalar:g}, not with 0")
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


def _gelu_gate(rw: Rewriter, call: OpCall, value: Value, x: Value) -> list[OpCall] | None:
    """The ops of `1 + erf(x / sqrt 2)`, if that is what computes the value."""
    plus = rw.producer(value, "add")
    if plus is None or not rw.only_reader(value):
        return None
    erf = next((e for v in plus.inputs if (e := rw.producer(v, "erf"))), None)
    if erf is None or not any(is_scalar(v, 1.0) for v in plus.inputs):
        return None
    inner = rw.producer(erf.inputs[0])
    if inner is None or not (rw.only_reader(erf.outputs[0]) and rw.only_reader(erf.inputs[0])):
        return None
    by_division = (
        inner.kind == "divide" and inner.inputs[0] is x and is_scalar(inner.inputs[1], math.sqrt(2))
    )
    by_product = inner.kind == "multiply" and any(
        v is x and is_scalar(other, math.sqrt(0.5)) for v, other in either_order(inner)
    )
    if by_division or by_product:
        return [inner, erf, plus]
    factor = next((v.scalar for v in inner.inputs if v.scalar is not None), None)
    if inner.kind in ("divide", "multiply") and factor is not None:
        text = f"{erf.name} is of {inner.name} by {factor:g}, not of x / sqrt(2)"
        rw.decline(call, "gelu", f"{text}, as in GELU")
    return None


def gelu(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "multiply":
        return None
    absorbed: list[OpCall] = []
    factors = [f for v in call.inputs for f in _factors(rw, v, absorbed)]
    half = [f for f in factors if is_scalar(f, 0.5)]
    rest = [f for f in factors if not is_scalar(f, 0.5)]
    if len(half) != 1 or len(rest) != 2:
        return None
    for x, gate in ((rest[0], rest[1]), (rest[1], rest[0])):
        gate_ops = _gelu_gate(rw, call, gate, x)
        if gate_ops is not None:
            gone = [*gate_ops, *absorbed]
            return [absorb(call, gone, kind="gelu", inputs=(x,), attrs={})], gone
    return None


def clip(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """minimum(maximum(x, low), high) of constants, the maximum with 0 read as relu already."""
    if call.kind != "minimum":
        return None
    for inner, high in either_order(call):
        lower = rw.producer(inner)
        if high.scalar is None or lower is None or not rw.only_reader(inner):
            continue
        if lower.kind == "relu":
            x, low = lower.inputs[0], 0.0
        elif lower.kind == "maximum":
            pair = next(((v, c) for v, c in either_order(lower) if c.scalar is not None), None)
            if pair is None:
                continue
            x, low = pair[0], float(pair[1].scalar or 0.0)
        else:
            continue
        if low > high.scalar:  # a clip gives the lower limit then, this the upper one
            rw.decline(call, "clip", f"it is the minimum of {high.scalar:g} and at least {low:g}")
        elif x.shape == call.outputs[0].shape:
            attrs = {"a_min": low, "a_max": float(high.scalar)}
            return [absorb(call, [lower], kind="clip", inputs=(x,), attrs=attrs)], [lower]
    return None
