"""Choose which composite takes which ops. Earlier composites win; within one, larger matches do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import CompositeError
from ..ir.canonical import declined
from ..ir.graph import OpCall, OpGraph, Value
from ..ir.rules.rewriter import Declined
from .declared import declared, root_kinds
from .match import Match, PredicateError, find
from .miss import Miss
from .report import BROKEN, MATCHED, MISSED, PART, REFUSED, TAKEN, Record, Report, owners

if TYPE_CHECKING:
    from ..composite import Composite

# Why a match is turned down, beside the differences that miss.py names.
CHECK, READER, TIED, CYCLE, SHAPE, OVERLAP, LARGER, RAISED, VERIFIED, PREDICATE, BLOCKS, ALONE = (
    "check", "used outside", "tied", "cycle", "unknown shape", "overlap", "larger match",
    "check raised", "verification", "predicate raised", "dataflow blocks",
    "read by context",
)  # fmt: skip
# What `OpCall.needs_product` is about.
PRODUCTS = ("batch_matmul", "conv2d", "dense", "matmul")
Hints = dict[str, list[Declined]]


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


def select(
    graph: OpGraph,
    composites: Iterable[Composite],
    *,
    strict: bool = True,
    refused: Mapping[tuple[str, str], str] | None = None,
    block_of: Mapping[Any, int] | None = None,
) -> tuple[list[Match], Report]:
    """Graph -> the chosen matches in topological order of their roots, and the reasons for all the
    rest. A check that raises is an error, or a record if not `strict`. `refused` is why a
    composite (by name) must not be taken at a root: verification found it wrong there. `block_of`
    says in which block of main an IR node is, where no kernel can hold ops of two.
    """
    asked = list(composites)
    hints, problems = _hints(graph)
    taken: dict[int, Match] = {}
    chosen: list[Match] = []
    records: list[Record] = []
    for composite in asked:
        found, missed = _candidates(graph, composite, hints, strict)
        records += missed
        for match in sorted(found, key=lambda m: -len(m.ops)):
            told = (refused or {}).get((composite.name, match.root.name), "")
            refusal = Refusal(VERIFIED, told) if told else _apart(match, block_of or {})
            record = _decide(graph, match, taken, strict, refusal)
            records.append(record)
            if record.status == MATCHED:
                chosen.append(match)
                taken.update({id(call): match for call in match.ops})
    position = {id(call): i for i, call in enumerate(graph.ops)}
    chosen.sort(key=lambda m: position[id(m.root)])
    owner = owners(chosen)
    ops = tuple((c.name, c.kind, owner.get(id(c), "")) for c in graph.ops if c.sources)
    edges = tuple((source, call.name) for call in graph.ops for source in _sources(graph, call))
    outline = tuple(map(declared, asked))
    return chosen, Report(tuple(records), ops, outline, edges, graph.absorbed, problems)


def _hints(graph: OpGraph) -> tuple[Hints, tuple[str, ...]]:
    """By op; what goes wrong here is told, and stops nobody."""
    found: Hints = {}
    try:
        for each in declined(graph):
            found.setdefault(each.op, []).append(each)
    except Exception as err:
        return {}, (f"no hints about importers: {type(err).__name__}: {err}",)
    return found, ()


def _sources(graph: OpGraph, call: OpCall) -> Iterator[str]:
    """The ops that an op reads; through those that canonicalising made up."""
    if not call.sources:
        return
    for value in {id(v): v for v in call.inputs}.values():
        origin = _origin(graph, value)
        if origin not in ("input", "constant"):
            yield origin


def _origin(graph: OpGraph, value: Value) -> str:
    """The op that computes a value, "input" or "constant"."""
    producer = graph.producer(value)
    while producer is not None and not producer.sources:
        value = producer.inputs[0]
        producer = graph.producer(value)
    if producer is not None:
        return producer.name
    return "constant" if value.is_constant else "input"


def _candidates(
    graph: OpGraph, composite: Composite, hints: Hints, strict: bool
) -> tuple[list[Match], list[Record]]:
    """Every op that the pattern could end in: a match, or a record of the nearest miss."""
    kinds = root_kinds(composite.root)
    found: list[Match] = []
    missed: list[Record] = []
    for root in graph.ops:
        if root.kind not in kinds or not root.sources:  # no sources: not an op of the model
            continue
        try:
            result = find(composite, graph, root)
        except PredicateError as err:
            missed.append(_broken(Record(composite.name, root.name, BROKEN, str(err)), strict, err))
            continue
        if isinstance(result, Miss):
            hint = _hint(result, hints)
            record = Record(composite.name, root.name, MISSED, str(result), hint=hint)
            missed.append(replace(record, **vars(result)))
        else:
            found.append(result)
    return found, missed


def _broken(record: Record, strict: bool, err: PredicateError) -> Record:
    """The pattern itself raised: an error, or a record."""
    if strict:
        raise CompositeError(f"composite {record.composite}: {record.reason}") from err
    return replace(record, cause=PREDICATE, where=record.root)


def _hint(miss: Miss, hints: Hints) -> str:
    """Why the op that differs is not what a rule nearly read it as."""
    words = set(miss.wanted.replace(",", "").split())
    about = [d.reason for d in hints.get(miss.where, ()) if d.kind in words]
    return "; ".join(dict.fromkeys(about))


def _decide(
    graph: OpGraph,
    match: Match,
    taken: dict[int, Match],
    strict: bool,
    refusal: Refusal | None = None,
) -> Record:
    ops = tuple(call.name for call in match.ops)
    record = Record(match.composite.name, match.root.name, MATCHED, match.composite.why, ops)
    overlap = next((call for call in match.ops if id(call) in taken), None)
    if overlap is not None:
        return _overlapping(record, overlap, match, taken)
    refusal = refusal or _leak(graph, match) or _tied(graph, match) or _alone(graph, match)
    refusal = refusal or _unknown_shape(match) or _checked(match, strict)
    if refusal is not None:
        return replace(record, **vars(refusal))
    outside = ((name, v.type, _origin(graph, v)) for name, v in match.args.items())
    return replace(record, edges=tuple(_edges(graph, match)), args=tuple(outside))


def _overlapping(record: Record, call: OpCall, match: Match, taken: dict[int, Match]) -> Record:
    """Taken by an earlier match; by a larger one of the same composite, it is just part of that."""
    owner = taken[id(call)]
    name, root = owner.composite.name, owner.root.name
    record = replace(record, where=call.name, owner=name, owner_root=root)
    if owner.composite is match.composite and all(taken.get(id(c)) is owner for c in match.ops):
        reason = f"part of the larger match at {root}"
        return replace(record, status=PART, cause=LARGER, reason=reason)
    reason = f"{call.name} belongs to {name} at {root}"
    return replace(record, status=TAKEN, cause=OVERLAP, reason=reason)


def _edges(graph: OpGraph, match: Match) -> Iterator[tuple[str, str, str]]:
    """The values that never leave the kernel."""
    outputs = {id(v) for v in match.outputs}
    for call in match.ops:
        for value in {id(v): v for v in call.inputs}.values():
            producer = graph.producer(value)
            if producer is not None and producer in match.ops and id(value) not in outputs:
                yield producer.name, call.name, value.type


def _checked(match: Match, strict: bool) -> Refusal | None:
    """What the composite's check says."""
    from ..composite import Refused

    if match.composite.check is None:
        return None
    try:
        match.composite.check(match)
    except Refused as refusal:
        return Refusal(CHECK, str(refusal))
    except Exception as err:  # whatever a check raises is its own error, with its name
        text = f"its check raised {type(err).__name__}: {err}"
        if strict:
            raise CompositeError(f"composite {match.composite.name}: {text}") from err
        return Refusal(RAISED, text, status=BROKEN)
    return None


def _leak(graph: OpGraph, match: Match) -> Refusal | None:
    """Why the group cannot be cut out: a value used outside, or an input computed from the group's
    results.
    """
    inside = {id(call) for call in match.ops}
    for call in match.ops:
        for value in call.outputs:
            if any(value is out for out in match.outputs):
                continue
            reader = next((u for u in graph.users(value) if id(u) not in inside), None)
            if reader is not None:
                text = f"{call.name} is also used outside the group, by {reader.name}"
                return Refusal(READER, text, call.name, reader=reader.name)
            if graph.is_output(value):
                text = f"{call.name} is also a result of the model"
                return Refusal(READER, text, call.name, reader="output")
    for name, value in match.args.items():
        producer = graph.producer(value)
        if producer is not None and id(producer) in inside:
            text = f"argument {name} is computed inside the group, by {producer.name}"
            return Refusal(CYCLE, text, name, found=producer.name)
    # With one result, whatever is computed from the group comes after all that it reads.
    return _cycle(graph, match, inside) if len(match.outputs) > 1 else None


def _alone(graph: OpGraph, match: Match) -> Refusal | None:
    """An op that is what it was read as only behind a product: alone in a function, nobody could
    read it so again.
    """
    inside = {id(call) for call in match.ops}
    for call in match.ops:
        before = graph.producer(call.inputs[0]) if call.needs_product else None
        while before is not None and id(before) in inside and before.kind not in PRODUCTS:
            tensors = [v for v in before.inputs if v.scalar is None]
            before = graph.producer(tensors[0]) if tensors else None
        if before is not None and id(before) not in inside:
            text = f"{call.name} is read so because of {before.name}, which the group has not"
            return Refusal(ALONE, text, call.name, found=before.name)
    return None


def _apart(match: Match, block_of: Mapping[Any, int]) -> Refusal | None:
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
    inside = {id(call) for call in match.ops}
    last = {id(call.tie): call for call in match.ops if call.tie is not None}
    for call in graph.ops if last else ():
        end = last.get(id(call.tie))
        if end is None or call is end:
            continue
        returned = any(value is out for value in call.outputs for out in match.outputs)
        if id(call) not in inside or returned:
            text = f"{end.name} is cut out together with {call.name}, or not at all"
            return Refusal(TIED, text, end.name, reader=call.name)
    return None


def _cycle(graph: OpGraph, match: Match, inside: set[int]) -> Refusal | None:
    """An outside op that reads a result of the group and feeds the group again."""
    after: set[int] = set()
    for call in graph.ops:
        for value in call.inputs:
            producer = graph.producer(value)
            if producer is None or id(call) in inside:
                continue
            if id(producer) in after or id(producer) in inside:
                after.add(id(call))
    for name, value in match.args.items():
        producer = graph.producer(value)
        if producer is not None and id(producer) in after:
            text = f"argument {name} is computed from a result of the group, by {producer.name}"
            return Refusal(CYCLE, text, name, found=producer.name)
    return None


def _unknown_shape(match: Match) -> Refusal | None:
    values: list[tuple[str, Value]] = [*match.args.items()]
    values += [(call.name, v) for call in match.ops for v in call.outputs]
    for name, value in values:
        if not value.is_static:
            text = f"{name} has an extent that is not known when compiling: {value.type}"
            return Refusal(SHAPE, text, name, "every extent known", value.type)
    return None
