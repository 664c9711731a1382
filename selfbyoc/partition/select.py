"""Choose which composite takes which ops. Earlier composites win; within one, larger matches do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import CompositeError
from ..ir.graph import OpGraph, Value
from .match import Match, Miss, find
from .pattern import Either, Item, Node, Op
from .report import MATCHED, MISSED, REFUSED, TAKEN, Record, Report, owners

if TYPE_CHECKING:
    from ..composite import Composite


def select(graph: OpGraph, composites: Iterable[Composite]) -> tuple[list[Match], Report]:
    """Graph -> the chosen matches in topological order of their roots, and the reasons for all the
    rest.
    """
    taken: dict[int, Match] = {}
    chosen: list[Match] = []
    records: list[Record] = []
    for composite in composites:
        found, missed = _candidates(graph, composite)
        records += missed
        for match in sorted(found, key=lambda m: -len(m.ops)):
            if _is_part(match, taken):
                continue
            record = _decide(graph, match, taken)
            records.append(record)
            if record.status == MATCHED:
                chosen.append(match)
                taken.update({id(call): match for call in match.ops})
    position = {id(call): i for i, call in enumerate(graph.ops)}
    chosen.sort(key=lambda m: position[id(m.root)])
    owner = owners(chosen)
    ops = tuple((c.name, c.kind, owner.get(id(c), "")) for c in graph.ops if c.sources)
    return chosen, Report(tuple(records), ops)


def _is_part(match: Match, taken: dict[int, Match]) -> bool:
    """Whether a larger match of the same composite holds all of these ops: no decision, just its
    smaller form.
    """
    owners_ = {id(taken[id(call)]) if id(call) in taken else 0 for call in match.ops}
    return (
        len(owners_) == 1
        and 0 not in owners_
        and taken[id(match.root)].composite is match.composite
    )


def _candidates(graph: OpGraph, composite: Composite) -> tuple[list[Match], list[Record]]:
    kinds = _root_kinds(composite.root)
    found: list[Match] = []
    missed: list[Record] = []
    for root in graph.ops:
        if root.kind not in kinds:
            continue
        result = find(composite, graph, root)
        if isinstance(result, Miss):
            missed.append(Record(composite.name, root.name, MISSED, str(result)))
        else:
            found.append(result)
    return found, missed


def _root_kinds(node: Node) -> set[str]:
    if isinstance(node, Either):
        return set().union(*map(_root_kinds, node.options))
    if isinstance(node, Item):
        return {node.of.kind}
    return {node.kind} if isinstance(node, Op) else set()


def _decide(graph: OpGraph, match: Match, taken: dict[int, Match]) -> Record:
    from ..composite import Refused

    name, root = match.composite.name, match.root.name
    ops = tuple(call.name for call in match.ops)
    for call in match.ops:
        if id(call) in taken:
            owner = taken[id(call)]
            taken_by = f"{call.name} belongs to {owner.composite.name} at {owner.root.name}"
            return Record(name, root, TAKEN, taken_by, ops)
    reason: str | None = _leak(graph, match) or _unknown_shape(match)
    if reason is None and match.composite.check is not None:
        try:
            match.composite.check(match)
        except Refused as refusal:
            reason = str(refusal)
        except Exception as err:  # whatever a check raises is its own error, with its name
            kind = type(err).__name__
            raise CompositeError(f"composite {name}: its check raised {kind}: {err}") from err
    if reason is not None:
        return Record(name, root, REFUSED, reason, ops)
    return Record(name, root, MATCHED, match.composite.why, ops)


def _leak(graph: OpGraph, match: Match) -> str | None:
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
                return f"{call.name} is also used outside the group, by {reader.name}"
            if graph.is_output(value):
                return f"{call.name} is also a result of the model"
    for name, value in match.args.items():
        producer = graph.producer(value)
        if producer is not None and id(producer) in inside:
            return f"argument {name} is computed inside the group, by {producer.name}"
    # With one result, whatever is computed from the group comes after all that it reads.
    return _cycle(graph, match, inside) if len(match.outputs) > 1 else None


def _cycle(graph: OpGraph, match: Match, inside: set[int]) -> str | None:
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
            return f"argument {name} is computed from a result of the group, by {producer.name}"
    return None


def _unknown_shape(match: Match) -> str | None:
    values: list[tuple[str, Value]] = [*match.args.items()]
    values += [(call.name, v) for call in match.ops for v in call.outputs]
    for name, value in values:
        if not value.is_static:
            return f"{name} has an extent that is not known when compiling: {value.type}"
    return None
