"""A raw graph with what the attributes of its external function say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..graph import OpCall, OpGraph, Value, substitute
from ..ir.canonical import canonicalize

# Attributes of an external function, as JSON: the constants of one element, and what comes packed.
SCALARS, PACKED = "tefuse.scalars", "tefuse.packed"


def told_graph(raw: OpGraph, attrs: Mapping[str, Any]) -> OpGraph:
    """A raw graph with what our attributes say of it."""
    graph = _with_scalars(raw, {int(k): v for k, v in attrs.get(SCALARS, {}).items()})
    graph = _without_stand_ins(graph, [int(k) for k in attrs.get(PACKED, {})])
    return canonicalize(graph)


def _with_scalars(graph: OpGraph, scalars: Mapping[int, float]) -> OpGraph:
    """The values of one element that every caller passes as the same constant."""
    new = {
        v: replace(v, scalar=scalars[i], is_constant=True)
        for i, v in enumerate(graph.inputs)
        if i in scalars and _can_be_written(graph, v, scalars[i])
    }
    return substitute(graph, new)


def _can_be_written(graph: OpGraph, value: Value, number: float) -> bool:
    """TVM (both generations) raises where it shall write `x / 0.0`: read at run time it is inf."""
    divisors = (call.inputs[1] for call in graph.users(value) if call.kind == "divide")
    return not (number == 0 and "float" in value.dtype and any(v is value for v in divisors))


def _without_stand_ins(graph: OpGraph, positions: Sequence[int]) -> OpGraph:
    """Drop the ops that only give a packed parameter its unpacked type back (see
    partition/finish.py).
    """
    new: dict[Value, Value] = {}
    gone: set[OpCall] = set()
    for position in positions:
        value = graph.inputs[position]
        while True:
            (step,) = graph.users(value)
            gone.add(step)
            value = step.outputs[0]
            if step.kind in ("broadcast_to", "full"):
                break
        new[graph.inputs[position]] = value
    inputs = tuple(new.get(v, v) for v in graph.inputs)
    return OpGraph(inputs, tuple(c for c in graph.ops if c not in gone), graph.outputs)
