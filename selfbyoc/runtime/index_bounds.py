"""Inputs that are indices: what their numbers may be. A kernel that is given others reads the
nearest row that is there (tvm/indices.py); whoever calls a library is told before. So is
whoever gives a mask with padding to a model that was read as one without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..codegen.hook import hook
from ..graph import OpCall, OpGraph, Value
from ..ir.generation import ir
from ..partition.generation import constants
from ..partition.generation import ir as parts
from ..partition.source_names import names_of
from ..tvm.indices import USUAL_MODE
from ..tvm.types import IRModule

_ALONG_AN_AXIS = ("take", "gather", "gather_elements", "scatter_elements")
_FROM_THE_END = ("scatter_elements",)  # TVM counts negative numbers so, on both generations
_SAME_NUMBERS = (
    "cast", "reshape", "expand_dims", "squeeze", "transpose", "flatten", "broadcast_to",
)  # fmt: skip


def index_bounds(
    graph: OpGraph, names: Sequence[str], inside: Mapping[str, OpGraph] | None = None
) -> dict[str, tuple[int, int]]:
    """The bounds of the inputs, by these names, that nothing changes before they are indices;
    `inside`: what functions compute that the graph calls.
    """
    places = {value: n for n, value in enumerate(graph.inputs)}
    found: dict[str, tuple[int, int]] = {}
    for index, extent, is_signed in _indices(graph, inside or {}):
        value, from_the_end = _origin(graph, index)
        if value in places and value.dtype.startswith(("int", "uint")):
            name = names[places[value]]
            low, high = found.get(name, (-extent, extent - 1))
            least = -extent if from_the_end or is_signed else 0
            found[name] = max(low, least), min(high, extent - 1)
    return found


def _indices(graph: OpGraph, inside: Mapping[str, OpGraph]) -> Iterator[tuple[Value, int, bool]]:
    """The values that are indices, of how many places, and whether negative ones count from the
    end.
    """
    for call in graph.ops:
        if (extent := _extent(call)) is not None:
            yield call.inputs[1], extent, call.kind in _FROM_THE_END
        called = next((name for s in call.sources if (name := constants.callee(s))), "")
        for index, size, is_signed in _indices(inside[called], {}) if called in inside else ():
            given = dict(zip(inside[called].inputs, call.inputs, strict=True))
            value, _ = _origin(inside[called], index)
            if value in given:
                yield given[value], size, is_signed


def _extent(call: OpCall) -> int | None:
    """How many places there are along the axis of an op that is given indices."""
    if call.kind == "embedding":
        return call.inputs[0].shape[0]
    if call.kind not in _ALONG_AN_AXIS or not call.sources:
        return None
    attrs, data = call.sources[0].attrs, call.inputs[0]
    if getattr(attrs, "mode", USUAL_MODE) != USUAL_MODE:
        return None  # the model says itself what other numbers mean
    axis = getattr(attrs, "axis", None)
    if axis is None and data.ndim != 1:
        return None  # of all elements, in order
    extent = data.shape[0 if axis is None else int(axis)]
    return None if extent is None else int(extent)


def _origin(graph: OpGraph, value: Value) -> tuple[Value, bool]:
    """What a value's numbers are those of, and whether negative ones count from the end."""
    from_the_end = False
    while (call := graph.producer(value)) is not None:
        if call.kind in _SAME_NUMBERS:
            value = call.inputs[0]
        elif call.kind == "where" and _is_from_the_end(graph, call):
            value, from_the_end = call.inputs[2], True
        else:
            break
    return value, from_the_end


def _is_from_the_end(graph: OpGraph, choice: OpCall) -> bool:
    """`where(i < 0, i + count, i)`"""
    below, moved = (graph.producer(value) for value in choice.inputs[:2])
    pair = (("less", below), ("add", moved))
    return all(
        call is not None and call.kind == kind and call.inputs[0] is choice.inputs[2]
        for kind, call in pair
    )


def bounds_of(mod: IRModule, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The bounds of a module's inputs, those too that its source promises."""
    source = names_of(mod)
    own = dict(zip(source.inputs, names, strict=False)) if len(source.inputs) == len(names) else {}
    ones = {own.get(name, name): (1, 1) for name in source.ones}
    inside = {name: hook.read(func) for name, func in parts.external_functions(mod).items()}
    return {**index_bounds(ir.read(mod["main"], raw=True), names, inside), **ones}
