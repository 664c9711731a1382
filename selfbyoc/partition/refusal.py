"""Why ops that a pattern found cannot be cut out of their graph as one function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..graph import OpCall, OpGraph, Symbol, Value
from ..language.match.match import Match
from ..language.match.miss import READER
from ..tvm.types import Expr
from .extents import MOST, PRODUCTS, beyond
from .report import REFUSED

# Why a match is turned down, beside the differences that miss.py names.
CHECK, TIED, CYCLE, SHAPE, EMPTY, OVERLAP, LARGER, RAISED, VERIFIED, PREDICATE, BLOCKS, ALONE = (
    "check", "tied", "cycle", "unknown shape", "empty", "overlap", "larger match",
    "check raised", "verification", "predicate raised", "dataflow blocks", "read by context",
)  # fmt: skip
SLOWER = "profitability"
_NAMES = re.compile(r"[A-Za-z_]\w*")  # of symbols, in an extent's text
OUTSIDE = "beside a kernel"  # an elementwise op that did not join it


Place = tuple[str, str]  # a composite and a root op, by their names


@dataclass(frozen=True)
class Refusal:
    """Why a structural match is not taken; the fields are those of the record."""

    cause: str
    reason: str
    where: str = ""
    wanted: str = ""
    found: str = ""
    reader: str = ""
    status: str = REFUSED


def not_cut_out(graph: OpGraph, match: Match) -> Refusal | None:
    """The first reason why a structural match is no function of its own."""
    refusal = _leak(graph, match) or _tied(graph, match) or _alone(graph, match)
    return refusal or _shape(match)


def _leak(graph: OpGraph, match: Match) -> Refusal | None:
    """Why the group cannot be cut out: a value used outside, or an input computed from the group's
    results.
    """
    inside = set(match.ops)
    for call in match.ops:
        for value in call.outputs:
            if any(value is out for out in match.outputs):
                continue
            reader = next((u for u in graph.users(value) if u not in inside), None)
            if reader is not None:
                text = f"{call.name} is also used outside the group, by {reader.name}"
                return Refusal(READER, text, call.name, reader=reader.name)
            if graph.is_output(value):
                text = f"{call.name} is also a result of the model"
                return Refusal(READER, text, call.name, reader="output")
    for name, value in match.args.items():
        producer = graph.producer(value)
        if producer is not None and producer in inside:
            text = f"argument {name} is computed inside the group, by {producer.name}"
            return Refusal(CYCLE, text, name, found=producer.name)
    # With one result, whatever is computed from the group comes after all that it reads.
    return _cycle(graph, match, inside) if len(match.outputs) > 1 else None


def _alone(graph: OpGraph, match: Match) -> Refusal | None:
    """An op that is what it was read as only after a product: alone in a function, nobody could
    read it so again.
    """
    inside = set(match.ops)
    for call in match.ops:
        before = graph.producer(call.inputs[0]) if call.needs_product else None
        while before is not None and before in inside and before.kind not in PRODUCTS:
            tensors = [v for v in before.inputs if v.scalar is None]
            before = graph.producer(tensors[0]) if tensors else None
        if before is not None and before not in inside:
            text = f"{call.name} is read so because of {before.name}, which the group has not"
            return Refusal(ALONE, text, call.name, found=before.name)
    return None


def apart(match: Match, block_of: Mapping[Expr, int]) -> Refusal | None:
    """Ops of two blocks of main, between which something has effects: no kernel reaches over it."""
    blocks = {
        block_of[source]: call
        for call in match.ops
        for source in call.sources
        if source in block_of
    }
    if len(blocks) < 2:
        return None
    (_, first), *_, (_, last) = sorted(blocks.items(), key=lambda item: item[0])
    text = f"{first.name} and {last.name} are in different dataflow blocks"
    return Refusal(BLOCKS, f"{text}, with something that has effects between them", last.name)


def _tied(graph: OpGraph, match: Match) -> Refusal | None:
    """Ops that the IR holds in another form, which only the group of all of them undoes."""
    inside = set(match.ops)
    last = {call.tie: call for call in match.ops if call.tie is not None}
    for call in graph.in_order(c for end in last.values() for c in graph.tied(end)):
        end = last[call.tie]
        if call is end:
            continue
        returned = any(value is out for value in call.outputs for out in match.outputs)
        if call not in inside or returned:
            text = f"{end.name} is cut out together with {call.name}, or not at all"
            return Refusal(TIED, text, end.name, reader=call.name)
    return None


def _cycle(graph: OpGraph, match: Match, inside: set[OpCall]) -> Refusal | None:
    """An outside op that reads a result of the group and feeds the group again."""
    after: set[OpCall] = set()
    for call in graph.ops:
        for value in call.inputs:
            producer = graph.producer(value)
            if producer is None or call in inside:
                continue
            if producer in after or producer in inside:
                after.add(call)
    for name, value in match.args.items():
        producer = graph.producer(value)
        if producer is not None and producer in after:
            text = f"argument {name} is computed from a result of the group, by {producer.name}"
            return Refusal(CYCLE, text, name, found=producer.name)
    return None


def _shape(match: Match) -> Refusal | None:
    values: list[tuple[str, Value]] = [*match.args.items()]
    values += [(call.name, v) for call in match.ops for v in call.outputs]
    for name, value in values:
        if not value.is_static:
            text = f"{name} has an extent that is not known when compiling: {value.type}"
            return Refusal(SHAPE, text, name, "every extent known", value.type)
        if 0 in value.shape:  # plans divide by extents, and there is nothing to compute
            return Refusal(EMPTY, f"{name} is empty: {value.type}", name, "elements", value.type)
    return _unbound(match) or _huge(match)


def _unbound(match: Match) -> Refusal | None:
    """A kernel finds a size where it is the extent of an argument: `n`, or `n + 1` as a whole."""
    arguments = [*match.args.items()]
    has = {e.name for _, value in arguments for e in value.shape if isinstance(e, Symbol)}
    inside = [(call.name, value) for call in match.ops for value in call.outputs]
    for name, value in arguments + inside:
        for extent in value.shape:
            used = set(_NAMES.findall(extent.name)) if isinstance(extent, Symbol) else set()
            if used <= has or str(extent) in has:
                continue
            text = f"{name} has the extent {extent}, and no argument {min(used - has)} alone"
            return Refusal(SHAPE, text, name, "a symbol alone", value.type)
    return None


def _huge(match: Match) -> Refusal | None:
    """Kernels index with 32 bits: what is larger is TVM's."""
    name, text, found = beyond(match.ops, list(match.args.items()))
    return Refusal(SHAPE, f"{name} {text}: {found}", name, MOST, found) if name else None
