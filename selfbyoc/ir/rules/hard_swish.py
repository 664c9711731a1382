"""The rule of hard_swish: x times a line through x that is cut at 0 and 1. Its factors stand where
an exporter put them: before the line, in the limits, after the product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...graph import OpCall, Value
from .rewriter import Rewrite, Rewriter, absorb, either_order


@dataclass(frozen=True)
class _Scaled:
    """A number times the product of values, and the ops that compute it."""

    number: float
    values: tuple[Value, ...]
    ops: tuple[OpCall, ...] = ()


def _factors(rw: Rewriter, value: Value) -> _Scaled:
    """A value that one op reads, as far as multiplications and divisions by numbers go."""
    if value.scalar is not None:
        return _Scaled(float(value.scalar), ())
    call = rw.producer(value)
    if call is None or not rw.only_reader(value):
        return _Scaled(1.0, (value,))
    return _product(rw, call) or _Scaled(1.0, (value,))


def _product(rw: Rewriter, call: OpCall) -> _Scaled | None:
    """A product or a quotient by a number; the op itself comes last."""
    if call.kind == "multiply":
        one, other = (_factors(rw, v) for v in call.inputs)
        ops = (*one.ops, *other.ops, call)
        return _Scaled(one.number * other.number, (*one.values, *other.values), ops)
    if call.kind == "divide" and call.inputs[1].scalar:
        of = _factors(rw, call.inputs[0])
        return _Scaled(of.number / float(call.inputs[1].scalar), of.values, (*of.ops, call))
    return None


def _line(rw: Rewriter, value: Value, x: Value) -> tuple[float, float, tuple[OpCall, ...]] | None:
    """`a * x + b` as a, b and its ops."""
    plus = rw.producer(value, "add")
    if plus is None or not rw.only_reader(value):
        return None
    for term, shift in either_order(plus):
        if shift.scalar is None:
            continue
        scaled = _Scaled(1.0, (x,)) if term is x else _factors(rw, term)
        if scaled.values == (x,):
            return scaled.number, float(shift.scalar), (*scaled.ops, plus)
    return None


def hard_swish(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """x * clip(x + 3, 0, 6) / 6, or x * clip(x / 6 + 0.5, 0, 1)."""
    product = _product(rw, call)
    if product is None or len(product.values) != 2:
        return None
    for x, gate in (product.values, product.values[::-1]):
        cut = rw.producer(gate, "clip")
        line = _line(rw, cut.inputs[0], x) if cut is not None else None
        if cut is None or line is None or not rw.only_reader(gate):
            continue
        slope, shift, ops = line
        low, high = (float(cut.attrs[name]) for name in ("a_min", "a_max"))
        found = [n * product.number for n in (slope, shift, low, high)]
        if all(math.isclose(*pair, rel_tol=1e-6) for pair in zip(found, _WANTED, strict=True)):
            gone = [*ops, cut, *product.ops[:-1]]
            return [absorb(call, gone, kind="hard_swish", inputs=(x,), attrs={})], gone
        text = "x * clip({:g} * x + {:g}, {:g}, {:g})".format(*found)
        rw.decline(call, "hard_swish", f"it is {text}, not x * clip(x / 6 + 0.5, 0, 1)")
    return None


_WANTED = (1 / 6, 0.5, 0.0, 1.0)
