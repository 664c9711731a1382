"""A raw graph with what the attributes of its external function say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import ReadingError
from ..graph import OpCall, OpGraph, Shape, Value, substitute
from ..ir.canonical import canonicalize
from ..language.match.graph_data import graph_of
from ..language.match.reading import Reading
from ..language.match.reread import in_its_order
from ..ops.vocabulary import KINDS
from ..tvm.types import Attrs

# Attributes of an external function, as JSON, by position: the constants of one element, and what
# comes packed.
SCALARS, PACKED = "tefuse.scalars", "tefuse.packed"
# Constants of bytes that have 7 bits in every call: products of them cannot saturate.
SEVEN_BITS = "tefuse.seven_bits"
# The match that partitioning read (match/reading.py); and its graph of known sizes, for where
# another pass wrote the function's body anew, in ops that nobody reads.
READING, WRITTEN = "tefuse.reading", "tefuse.graph"
# Whether the composite takes leading axes of open sizes as one, and fixed ones after them too
# (codegen/symbolic/rows.py).
OF_ROWS, OF_INNER_ROWS = "tefuse.of_rows", "tefuse.of_inner_rows"


def told_graph(raw: OpGraph, attrs: Attrs) -> OpGraph:
    """A raw graph with what our attributes say of it, as partitioning read it."""
    scalars = {int(k): v for k, v in attrs.get(SCALARS, {}).items()}
    unpacked = _without_stand_ins(
        _with_scalars(raw, scalars), [int(k) for k in attrs.get(PACKED, {})]
    )
    graph = None if unpacked is None else canonicalize(unpacked)
    if READING in attrs:
        reading = Reading.of(attrs[READING])
        found = None if graph is None else in_its_order(reading, graph)
        if found is None and unpacked is not None:
            # At a size of 1 a mask has the shape of a bias, say.
            kinds = {step.kind for step in reading.steps}
            found = in_its_order(reading, canonicalize(unpacked, kinds))
        if found is None and (graph is None or PACKED in attrs or not _is_known(graph)):
            # No other kernel can read weights that were packed for this one.
            found = _as_written(raw, attrs)
        graph = found or graph
    if graph is None:
        text = "another pass changed what stands for its packed weights"
        raise ReadingError(f"the function of {raw.inputs}: {text}")
    return with_seven_bits(graph, attrs.get(SEVEN_BITS, ()))


def with_seven_bits(graph: OpGraph, positions: Sequence[int]) -> OpGraph:
    """The inputs that have 7 bits, and what was made of them before an op reads it, say so."""
    new = {graph.inputs[i]: replace(graph.inputs[i], seven_bits=True) for i in positions}
    for call in graph.ops:
        if not call.sources and call.inputs[0] in new:
            new |= {v: replace(v, seven_bits=True) for v in call.outputs}
    ops = (replace(c, outputs=tuple(new.get(v, v) for v in c.outputs)) for c in graph.ops)
    return substitute(replace(graph, ops=tuple(ops)), new) if new else graph


def is_passed(graph: OpGraph, value: Value, number: float) -> bool:
    """Whether a kernel is passed this constant of one element, whatever it is: its readers are the
    same ops for any other.
    """
    readers = graph.users(value)
    known = [
        KINDS[call.kind].passed.get(i) if call.kind in KINDS else None
        for call in readers
        for i, read in enumerate(call.inputs)
        if read is value
    ]
    return bool(known) and all(values is not None and number not in values for values in known)


def _is_known(graph: OpGraph) -> bool:
    return all(call.kind in KINDS for call in graph.ops)


def _as_written(raw: OpGraph, attrs: Attrs) -> OpGraph | None:
    """The graph that partitioning left, for a function of the same types."""
    if WRITTEN not in attrs:
        return None
    graph = graph_of(attrs[WRITTEN])
    packed = {int(k): (tuple(p["shape"]), p["dtype"]) for k, p in attrs.get(PACKED, {}).items()}
    taken = [packed.get(i, (v.shape, v.dtype)) for i, v in enumerate(graph.inputs)]
    is_same = taken == _types(raw.inputs) and _types(graph.outputs) == _types(raw.outputs)
    return graph if is_same else None


def _types(values: Sequence[Value]) -> list[tuple[Shape, str]]:
    return [(v.shape, v.dtype) for v in values]


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


def _without_stand_ins(graph: OpGraph, positions: Sequence[int]) -> OpGraph | None:
    """Drop the ops that only give a packed parameter its unpacked type back (see
    partition/finish.py); None where they are not there.
    """
    new: dict[Value, Value] = {}
    gone: set[OpCall] = set()
    for position in positions:
        value = graph.inputs[position]
        while True:
            users = graph.users(value)
            if len(users) != 1:
                return None
            step = users[0]
            gone.add(step)
            value = step.outputs[0]
            if step.kind in ("broadcast_to", "full"):
                break
        new[graph.inputs[position]] = value
    inputs = tuple(new.get(v, v) for v in graph.inputs)
    return OpGraph(inputs, tuple(c for c in graph.ops if c not in gone), graph.outputs)
