"""Inputs that are indices: what their numbers may be. A kernel that is given others reads the
nearest row that is there (tvm/indices.py); whoever calls a library is told before. So is
whoever gives a mask with padding to a model that was read as one without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..codegen.hook import hook
from ..graph import OpCall, OpGraph, Value
from ..ir.generation import ir
from ..partition.generation import constants
from ..partition.generation import ir as parts
from ..partition.source_names import names_of
from ..tvm import GENERATION
from ..tvm.indices import USUAL_MODE
from ..tvm.types import IRModule
from .interface import sizes_of
from .sizes import IndexPlace, Size

_BY_COLUMNS = ("gather_nd", "scatter_nd")
_ALONG_AN_AXIS = ("take", "gather", "gather_elements", "scatter_elements")
_FROM_THE_END = ("scatter_elements",)  # TVM counts negative numbers so, on both generations
_SAME_NUMBERS = (
    "cast", "reshape", "expand_dims", "squeeze", "transpose", "flatten", "broadcast_to",
)  # fmt: skip


@dataclass(frozen=True)
class _Index:
    """A value that is places along an axis of another: all its numbers, or those at a place along
    one of its own axes; whether negative ones count from the end; a number that is none.
    """

    value: Value
    data: Value
    axis: int
    column: tuple[int, int] | None = None
    is_signed: bool = False
    ignored: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether two bounds say all of it."""
        return self.column is None and self.ignored is None and isinstance(self.extent, int)

    @property
    def extent(self) -> Any:
        """A number, or None or a text where it is open."""
        return self.data.shape[self.axis]


def index_bounds(
    graph: OpGraph, names: Sequence[str], inside: Mapping[str, OpGraph] | None = None
) -> dict[str, tuple[int, int]]:
    """The bounds of the inputs, by these names, that nothing changes before they are indices, all
    of their numbers and of axes of known size; `inside`: what functions compute that the graph
    calls.
    """
    places = {value: n for n, value in enumerate(graph.inputs)}
    found: dict[str, tuple[int, int]] = {}
    for index in (_traced(graph, index) for index in _indices(graph, inside or {})):
        if index.value in places and index.is_plain:
            name, extent = names[places[index.value]], index.extent
            low, high = found.get(name, (-extent, extent - 1))
            least = -extent if index.is_signed else 0
            found[name] = max(low, least), min(high, extent - 1)
    return found


def index_places(graph: OpGraph, sizes: Mapping[str, Size]) -> tuple[IndexPlace, ...]:
    """The same of columns of inputs, and of axes whose size is an input's: of `sizes` by name, or
    the axis of an input itself.
    """
    places = {value: n for n, value in enumerate(graph.inputs)}
    found: dict[IndexPlace, None] = {}
    for index in (_traced(graph, index) for index in _indices(graph, {})):
        known = isinstance(index.extent, int)
        if index.value not in places or index.is_plain:
            continue
        of = None
        if isinstance(index.extent, str) and index.extent in sizes:
            of = sizes[index.extent][1][0]
        elif index.data in places:
            of = places[index.data], index.axis
        if known or of is not None:
            count = int(index.extent) if isinstance(index.extent, int) else None
            of = None if known else of
            at = places[index.value], index.is_signed, index.column, count, of, index.ignored
            found[at] = None
    return tuple(found)


def _traced(graph: OpGraph, index: _Index) -> _Index:
    """Of the value whose numbers these are, before what leaves them as they are."""
    value, column, is_signed, ignored = index.value, index.column, index.is_signed, index.ignored
    while (call := graph.producer(value)) is not None:
        if call.kind in _SAME_NUMBERS:
            if column is not None and (column := _before(call, column)) is None:
                break
            value = call.inputs[0]
        elif call.kind == "where" and _is_from_the_end(graph, call):
            value, is_signed = call.inputs[2], True
        elif call.kind == "where" and (kept := _kept(graph, call)) is not None:
            value, ignored = kept
        else:
            break
    else:
        if value.dtype.startswith(("int", "uint")):
            found = replace(index, value=value, column=column)
            return replace(found, is_signed=is_signed, ignored=ignored)
    return index


def _kept(graph: OpGraph, choice: OpCall) -> tuple[Value, int] | None:
    """Of `where(i != n, i, 0)` or `where(i == n, 0, i)`: i and n. A loss leaves targets out so."""
    condition = graph.producer(choice.inputs[0])
    place = {"not_equal": 1, "equal": 2}.get("" if condition is None else condition.kind)
    if condition is None or place is None:
        return None
    value, number = choice.inputs[place], condition.inputs[1].scalar
    if condition.inputs[0] is not value or number is None:
        return None
    return value, int(number)


def _before(call: OpCall, column: tuple[int, int]) -> tuple[int, int] | None:
    """Where a column was before its axes were moved; None where nobody knows."""
    if call.kind == "cast":
        return column
    axes = getattr(call.sources[0].attrs, "axes", None) if call.sources else None
    if call.kind != "transpose" or axes is None:
        return None
    return int(axes[column[0]]) % call.inputs[0].ndim, column[1]


def _indices(graph: OpGraph, inside: Mapping[str, OpGraph]) -> Iterator[_Index]:
    """All that some op is given as indices."""
    for call in graph.ops:
        yield from _of_call(call)
        called = next((name for s in call.sources if (name := constants.callee(s))), "")
        for index in _indices(inside[called], {}) if called in inside else ():
            given = dict(zip(inside[called].inputs, call.inputs, strict=True))
            found = _traced(inside[called], index)
            if found.value in given:
                yield replace(found, value=given[found.value])


def _of_call(call: OpCall) -> Iterator[_Index]:
    """Those of one op."""
    if call.kind == "embedding":
        yield _Index(call.inputs[1], call.inputs[0], 0)
    if not call.sources or len(call.inputs) < 2:
        return
    attrs, (data, index, *_) = getattr(call.sources[0], "attrs", None), call.inputs
    if call.kind in _BY_COLUMNS:
        # One after another along the last axis; 0.17 has them along the first.
        own = 0 if GENERATION == "relay" else index.ndim - 1
        count, first = index.shape[own], int(getattr(attrs, "batch_dims", 0) or 0)
        for n in range(count if isinstance(count, int) else 0):
            yield _Index(index, data, first + n, None if count == 1 else (own, n))
    if call.kind not in _ALONG_AN_AXIS or getattr(attrs, "mode", USUAL_MODE) != USUAL_MODE:
        return  # or the model says itself what other numbers mean
    axis = getattr(attrs, "axis", None)
    if axis is not None or data.ndim == 1:  # else of all elements, in order
        axis = int(axis or 0) % max(1, data.ndim)
        yield _Index(index, data, axis, is_signed=call.kind in _FROM_THE_END)


def _is_from_the_end(graph: OpGraph, choice: OpCall) -> bool:
    """`where(i < 0, i + count, i)`"""
    below, moved = (graph.producer(value) for value in choice.inputs[:2])
    pair = (("less", below), ("add", moved))
    return all(
        call is not None and call.kind == kind and call.inputs[0] is choice.inputs[2]
        for kind, call in pair
    )


def bounds_of(
    mod: IRModule, names: Sequence[str]
) -> tuple[dict[str, tuple[int, int]], tuple[IndexPlace, ...]]:
    """The bounds of a module's inputs, those too that its source promises; and the places of
    others that a call has to look at.
    """
    source = names_of(mod)
    own = dict(zip(source.inputs, names, strict=False)) if len(source.inputs) == len(names) else {}
    ones = {own.get(name, name): (1, 1) for name in source.ones}
    inside = {name: hook.read(func) for name, func in parts.external_functions(mod).items()}
    graph, sizes = ir.read(mod["main"], raw=True), sizes_of(mod)
    found = {**index_bounds(graph, names, inside), **ones}
    if sizes:
        with ir.by_name():
            graph = ir.read(mod["main"], raw=True)
    return found, index_places(graph, sizes)
