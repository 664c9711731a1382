"""A graph of known sizes as data, and read again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...graph import OpCall, OpGraph, Symbol, Value, name_ops
from ...tvm.types import Attr, Attrs

_PLAIN = (str, int, float, bool, type(None))
IR = "IR"  # what stands for the nodes of an op that was read from some


def graph_data(graph: OpGraph) -> list[object] | None:
    """As lists, for an attribute; None where an attribute of an op, or an open size, is no such
    data.
    """
    values: dict[Value, int] = {}
    for value in (*graph.inputs, *(v for c in graph.ops for v in (*c.inputs, *c.outputs))):
        values.setdefault(value, len(values))
    if not all(_is_plain(call.attrs.values()) for call in graph.ops):
        return None
    if any(e is None or isinstance(e, Symbol) for value in values for e in value.shape):
        return None

    def numbers(found: Sequence[Value]) -> list[int]:
        return [values[value] for value in found]

    ops = [
        [c.kind, dict(c.attrs), numbers(c.inputs), numbers(c.outputs), bool(c.sources)]
        for c in graph.ops
    ]
    types = [
        [v.shape, v.dtype, v.is_constant, v.scalar, *([v.held, v.as_held] if v.held else ())]
        for v in values
    ]
    return [types, numbers(graph.inputs), ops, numbers(graph.outputs)]


def graph_of(data: Sequence[Any]) -> OpGraph:
    """The graph that `graph_data` made data of."""
    types, inputs, ops, outputs = data
    values = [_value(*told) for told in types]

    def taken(numbers: Sequence[int]) -> tuple[Value, ...]:
        return tuple(values[number] for number in numbers)

    calls = name_ops(
        OpCall(kind, taken(ins), _tuples(attrs), taken(outs), sources=(IR,) * written)
        for kind, attrs, ins, outs, written in ops
    )
    return OpGraph(taken(inputs), calls, taken(outputs))


def _value(
    shape: Sequence[int],
    dtype: str,
    is_constant: bool,
    scalar: float | None,
    held: str = "",
    as_held: bool = False,
) -> Value:
    return Value(
        tuple(shape), dtype, is_constant=is_constant, scalar=scalar, held=held, as_held=as_held
    )


def _is_plain(values: Iterable[Attr]) -> bool:
    """Whether JSON gives back the same, lists aside: attributes have tuples."""
    return all(_is_plain(v) if isinstance(v, tuple) else type(v) in _PLAIN for v in values)


def _tuples(attrs: Attrs) -> dict[str, Attr]:
    return {name: _tuple(value) for name, value in attrs.items()}


def _tuple(value: Attr) -> Attr:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
