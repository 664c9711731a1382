"""Several symbolic axes as one: of a batch and a length, a product of rows knows only how many rows
there are.

Where all ops of a kernel treat leading axes alike, it is learnt for the number of its rows: one
symbol in place of several, each row in its tile whatever the batch is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...errors import CompositeError, SymbolicError
from ...graph import OpCall, OpGraph, Symbol, Value
from ...ops.vocabulary import is_elementwise_kind
from ..external import External, match_of

ROWS = "rows"
ALONG_AXIS = ("bias_add", "layer_norm", "log_softmax", "rms_norm", "softmax")


def of_rows(source: External) -> External | None:
    """The same kernel of one symbol, the number of its rows; None where there is no such one."""
    lead = _lead(source.graph) if len(source.symbols) > 1 else 0
    open_ones = [_is_open(value) for value in _values(source.graph)]
    if not lead or not all(_is_of_rows(call, lead) for call in source.graph.ops):
        return None
    *others, main = source.symbols

    def read_at(sizes: Mapping[str, int]) -> OpGraph:
        assert source.read_at is not None, "it has symbols"
        read = source.read_at({**dict.fromkeys(others, 1), main: sizes[ROWS]})
        return _merged(read, open_ones, lead)

    sizes = {ROWS: Symbol(source.sizes[main], ROWS)}
    found = replace(source, graph=read_at(sizes), symbols=(ROWS,), sizes=sizes, read_at=read_at)
    try:
        match_of(found)
    except CompositeError:  # it asks for an axis that is gone
        return None
    return found


def _values(graph: OpGraph) -> Iterator[Value]:
    """Each use of a value, in an order that is the same at all sizes."""
    yield from graph.inputs
    for call in graph.ops:
        yield from (*call.inputs, *call.outputs)


def _is_open(value: Value) -> bool:
    return any(isinstance(extent, Symbol) for extent in value.shape)


def _lead(graph: OpGraph) -> int:
    """How many leading axes all open values have in common, if these are all that is open; or 0."""
    shapes = [value.shape for value in _values(graph) if _is_open(value)]
    lead = sum(isinstance(extent, Symbol) for extent in shapes[0])
    first = [str(extent) for extent in shapes[0][:lead]]
    alike = all([str(e) for e in shape[:lead]] == first for shape in shapes)
    closed = all(not isinstance(e, Symbol) for shape in shapes for e in shape[lead:])
    distinct = len(set(first)) == lead and all(isinstance(e, Symbol) for e in shapes[0][:lead])
    return lead if alike and closed and distinct else 0


def _is_of_rows(call: OpCall, lead: int) -> bool:
    """Whether an op does the same in every row, and what is no row is for all of them."""
    out, first = call.outputs[0], call.inputs[0]
    if len(call.outputs) > 1 or not _is_open(out):
        return False
    closed = [value for value in call.inputs if not _is_open(value)]
    if is_elementwise_kind(call.kind) and call.kind not in ALONG_AXIS:
        return all(value.ndim <= out.ndim - lead for value in closed)
    if not _is_open(first) or len(closed) < len(call.inputs) - 1:
        return False
    if call.kind in ALONG_AXIS:
        axis = call.attrs["axis"]
        return isinstance(axis, int) and axis % out.ndim >= lead
    return call.kind == "dense" and first.ndim == lead + 1


def _merged(graph: OpGraph, open_ones: list[bool], lead: int) -> OpGraph:
    """The graph with one axis in place of the leading ones of its open values."""
    values = list(_values(graph))
    if len(values) != len(open_ones):
        raise SymbolicError("its graphs of some sizes differ in more than sizes")
    new: dict[Value, Value] = {}
    for value, is_open in zip(values, open_ones, strict=True):
        if is_open and value not in new:
            rows = math.prod(extent or 0 for extent in value.shape[:lead])
            rows = _named(rows, value.shape[:lead])
            new[value] = replace(value, shape=(rows, *value.shape[lead:]))

    def swapped(found: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(new.get(value, value) for value in found)

    ops = tuple(
        replace(
            call, inputs=swapped(call.inputs), outputs=swapped(call.outputs),
            attrs=_attrs(call, lead),
        )
        for call in graph.ops
    )  # fmt: skip
    return OpGraph(swapped(graph.inputs), ops, swapped(graph.outputs), graph.absorbed)


def _named(rows: int, lead: tuple[Any, ...]) -> int:
    """The number of rows, by name where the last axis has one."""
    return Symbol(rows, ROWS) if isinstance(lead[-1], Symbol) else rows


def _attrs(call: OpCall, lead: int) -> Mapping[str, Any]:
    axis = call.attrs.get("axis") if call.kind in ALONG_AXIS else None
    return call.attrs if axis is None or axis < 0 else {**call.attrs, "axis": axis - lead + 1}
