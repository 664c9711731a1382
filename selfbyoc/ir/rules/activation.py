"""Rules of canonicalisation: activations that importers take apart."""

from __future__ import annotations

import math
from dataclasses import replace

from ...graph import OpCall, Value
from ...ops.elementwise import bounds
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


def factors(rw: Rewriter, value: Value, absorbed: list[OpCall]) -> list[Value]:
    """The factors of a product of single-use multiplications; the ops taken apart go to
    `absorbed`.
    """
    call = rw.producer(value, "multiply")
    if call is None or not rw.only_reader(value):
        return [value]
    absorbed.append(call)
    return [f for v in call.inputs for f in factors(rw, v, absorbed)]


def _erf_of(rw: Rewriter, value: Value, weight: float) -> list[OpCall] | None:
    """The ops of `weight * erf(..)`, the erf first, if they compute the value for one reader."""
    if not rw.only_reader(value):
        return None
    if weight == 1.0:
        erf = rw.producer(value, "erf")
        return [erf] if erf is not None else None
    scaled = rw.producer(value, "multiply")
    for inner, factor in either_order(scaled) if scaled is not None else []:
        erf = rw.producer(inner, "erf")
        if scaled is not None and erf is not None and is_scalar(factor, weight):
            return [erf, scaled] if rw.only_reader(inner) else None
    return None


def _gelu_gate(
    rw: Rewriter, call: OpCall, value: Value, x: Value, weight: float
) -> list[OpCall] | None:
    """The ops of `weight + weight * erf(x / sqrt 2)`, if that is what computes the value."""
    plus = rw.producer(value, "add")
    if plus is None or not rw.only_reader(value):
        return None
    terms = [v for v, one in either_order(plus) if is_scalar(one, weight)]
    bell = next((found for v in terms if (found := _erf_of(rw, v, weight))), None)
    inner = rw.producer(bell[0].inputs[0]) if bell is not None else None
    if bell is None or inner is None or not rw.only_reader(inner.outputs[0]):
        return None
    by_division = (
        inner.kind == "divide" and inner.inputs[0] is x and is_scalar(inner.inputs[1], math.sqrt(2))
    )
    by_product = inner.kind == "multiply" and any(
        v is x and is_scalar(other, math.sqrt(0.5)) for v, other in either_order(inner)
    )
    if by_division or by_product:
        return [inner, *bell, plus]
    factor = next((v.scalar for v in inner.inputs if v.scalar is not None), None)
    if inner.kind in ("divide", "multiply") and factor is not None:
        text = f"{bell[0].name} is of {inner.name} by {factor:g}, not of x / sqrt(2)"
        rw.decline(call, "gelu", f"{text}, as in GELU")
    return None


def gelu(rw: Rewriter, call: OpCall) -> Rewrite | None:
    if call.kind != "multiply":
        return None
    absorbed: list[OpCall] = []
    found = [f for v in call.inputs for f in factors(rw, v, absorbed)]
    half = [f for f in found if is_scalar(f, 0.5)]
    rest = [f for f in found if not is_scalar(f, 0.5)]
    if len(half) > 1 or len(rest) != 2:
        return None
    weight = 1.0 if half else 0.5  # Relay's importer of PyTorch halves each term of the gate
    for x, gate in ((rest[0], rest[1]), (rest[1], rest[0])):
        gate_ops = _gelu_gate(rw, call, gate, x, weight)
        if gate_ops is not None:
            gone = [*gate_ops, *absorbed]
            return [absorb(call, gone, kind="gelu", inputs=(x,), attrs={})], gone
    return None


def clip(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """Minimum and maximum of constants in either order; a maximum with 0 is read as relu already.

    The outer one has the last word where the limits cross: the lower limit as in a clip, or the
    upper one, and then no clip says so.
    """
    for x, last, kind in _limited(call):
        other = "minimum" if kind == "maximum" else "maximum"
        inner = rw.producer(x)
        if inner is None or not rw.only_reader(x):
            continue
        first = next(((v, c) for v, c, k in _limited(inner) if k == other), None)
        if first is None:
            continue
        source, limit = first
        low, high = (last, limit) if kind == "maximum" else (limit, last)
        if kind == "minimum" and low > high:
            rw.decline(call, "clip", f"it is the minimum of {high:g} and at least {low:g}")
        elif source.shape == call.outputs[0].shape:
            attrs = {"a_min": low, "a_max": high}
            return [absorb(call, [inner], kind="clip", inputs=(source,), attrs=attrs)], [inner]
    return None


def _limited(call: OpCall) -> list[tuple[Value, float, str]]:
    """What a minimum, maximum or relu limits, its limit, and which of the two it is."""
    if call.kind == "relu":
        return [(call.inputs[0], 0.0, "maximum")]
    if call.kind not in ("minimum", "maximum"):
        return []
    pairs = either_order(call)
    return [(v, float(c.scalar), call.kind) for v, c in pairs if c.scalar is not None]


def clip_of_clip(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """A clip of a clip, as PyTorch's exporter writes a hard-swish: one clip, its limits those of
    the inner one within those of the outer one. Of integers these are the limits that their dtype
    has.
    """
    inner = rw.producer(call.inputs[0], "clip") if call.kind == "clip" else None
    if inner is None or not rw.only_reader(call.inputs[0]):
        return None
    outer, within = _limits(call), _limits(inner)
    if outer is None or within is None:
        return None
    low, high = (min(max(limit, outer[0]), outer[1]) for limit in within)
    attrs = {"a_min": low, "a_max": high}
    return [absorb(call, [inner], inputs=inner.inputs, attrs=attrs)], [inner]


def _limits(call: OpCall) -> tuple[float, float] | None:
    """The limits of a clip, where they are in order."""
    low, high = float(call.attrs["a_min"]), float(call.attrs["a_max"])
    if not low <= high:
        return None
    low, high = bounds({"a_min": low, "a_max": high}, call.outputs[0].dtype)
    return float(low), float(high)
