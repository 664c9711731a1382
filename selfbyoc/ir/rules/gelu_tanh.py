"""Rule of canonicalisation: GELU by tanh, as GPT-2 and those after it write it out."""

from __future__ import annotations

import math

import numpy as np

from ...graph import OpCall, Value
from ...ops.vocabulary import numpy_of
from .activation import factors
from .rewriter import Rewrite, Rewriter, absorb, either_order, is_scalar

_POLYNOMIAL = frozenset({"add", "divide", "multiply", "power"})
_AT = np.linspace(-3.0, 3.0, 13)
_WANTED = math.sqrt(2 / math.pi) * (_AT + 0.044715 * _AT**3)


def gelu_tanh(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """x * 0.5 * (1 + tanh(p(x))), the factors in any order, and p written in any way: it is told by
    its values.
    """
    if call.kind != "multiply":
        return None
    inside: list[OpCall] = []
    found = [f for v in call.inputs for f in factors(rw, v, inside)]
    rest = [f for f in found if not is_scalar(f, 0.5)]
    if len(found) != 3 or len(rest) != 2:
        return None
    for x, gate in (rest, rest[::-1]):
        bell = _gate(rw, gate, x)
        group = [*inside, *bell]
        if bell and _is_closed(rw, call, group):
            return [absorb(call, group, kind="gelu_tanh", inputs=(x,), attrs={})], group
    return None


def _gate(rw: Rewriter, gate: Value, x: Value) -> list[OpCall]:
    """The ops of 1 + tanh(p(x)), in topological order; none if it is something else."""
    plus = rw.producer(gate, "add")
    for value, one in either_order(plus) if plus is not None else []:
        tanh = rw.producer(value, "tanh")
        if plus is None or tanh is None or not is_scalar(one, 1.0):
            continue
        ops: dict[OpCall, None] = {}
        values = _values(rw, tanh.inputs[0], x, ops)
        if values is not None and np.allclose(values, _WANTED, rtol=1e-4):
            return [*ops, tanh, plus]
    return []


def _values(
    rw: Rewriter, value: Value, x: Value, ops: dict[OpCall, None]
) -> np.ndarray | float | None:
    """What a polynomial in x gives, and its ops; None if it is none."""
    if value is x:
        return _AT
    if value.scalar is not None:
        return float(value.scalar)
    call = rw.producer(value)
    if call is None or call.kind not in _POLYNOMIAL or len(ops) > 8:
        return None
    found = [_values(rw, v, x, ops) for v in call.inputs]
    if any(f is None for f in found):
        return None
    ops[call] = None
    result: np.ndarray = numpy_of(call.kind)([np.asarray(f) for f in found], call)
    return result


def _is_closed(rw: Rewriter, call: OpCall, group: list[OpCall]) -> bool:
    """Whether nobody else reads what is computed on the way."""
    inside = {call, *group}
    values = [op.outputs[0] for op in group]
    read = all(user in inside for v in values for user in rw.graph.users(v))
    return read and not any(map(rw.graph.is_output, values))
