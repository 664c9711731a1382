"""The record of a match: its ops, the values that stay in the kernel, and what goes in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..graph import OpCall, OpGraph, Value
from ..language.match.match import Match
from .report import Record

NO_OPS = ("", "input", "constant", "output")  # where a value comes from, or goes to


def of_match(graph: OpGraph, record: Record, match: Match) -> Record:
    """The record of a match with its ops, the values that stay inside, and its arguments."""
    ops = tuple(call.name for call in match.ops)
    outside = tuple((name, v.type, origin(graph, v)) for name, v in match.args.items())
    return replace(record, ops=ops, edges=tuple(_edges(graph, match)), args=outside)


def sources_of(graph: OpGraph, call: OpCall) -> Iterator[str]:
    """The ops that an op reads; through those that canonicalising made up."""
    if not call.sources:
        return
    for value in dict.fromkeys(call.inputs):
        found = origin(graph, value)
        if found not in ("input", "constant"):
            yield found


def origin(graph: OpGraph, value: Value) -> str:
    """The op that computes a value, "input" or "constant"."""
    producer = graph.producer(value)
    while producer is not None and not producer.sources:
        value = producer.inputs[0]
        producer = graph.producer(value)
    if producer is not None:
        return producer.name
    return "constant" if value.is_constant else "input"


def _edges(graph: OpGraph, match: Match) -> Iterator[tuple[str, str, str]]:
    """The values that never leave the kernel."""
    outputs = set(match.outputs)
    for call in match.ops:
        for value in dict.fromkeys(call.inputs):
            producer = graph.producer(value)
            if producer is not None and producer in match.ops and value not in outputs:
                yield producer.name, call.name, value.type
