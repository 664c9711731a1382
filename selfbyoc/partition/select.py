"""Choose which composite takes which ops. Earlier composites win; within one, larger matches do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from ..errors import CompositeError
from ..graph import OpCall, OpGraph
from ..ir.canonical import declined
from ..ir.origins import origins
from ..ir.rules.rewriter import Declined
from ..language.declared import Declared, declared
from ..language.known import is_builtin
from ..language.match.attribute import PredicateError
from ..language.match.match import Match, Ways
from ..language.match.miss import ATTRIBUTE, Miss
from ..language.outline import root_kinds
from ..language.raised import own_lines
from ..ops.cost import cost_of
from ..simplify.levels import DEQUANTIZES
from ..tvm.types import Expr
from .absorb import with_around
from .records import of_match, sources_of
from .refusal import CHECK, LARGER, OVERLAP, PREDICATE, RAISED, Refusal, apart, not_cut_out
from .report import BROKEN, MATCHED, MISSED, PART, TAKEN, Record, Report, owners

if TYPE_CHECKING:
    from ..language.composite import Composite

Hints = dict[str, list[Declined]]


def select(
    graph: OpGraph,
    composites: Iterable[Composite],
    *,
    strict: bool = True,
    refused: Mapping[tuple[str, str], Refusal] | None = None,
    block_of: Mapping[Expr, int] | None = None,
) -> tuple[list[Match], Report]:
    """Graph -> the chosen matches in topological order of their roots, and the reasons for all the
    rest. A check that raises is an error, or a record if not `strict`. `refused` is why a
    composite (by name) must not be taken at a root: it was found wrong or slow there. `block_of`
    says in which block of main an IR node is, where no kernel can hold ops of two.
    """
    asked = list(composites)
    hints, problems = _hints(graph)
    taken: dict[OpCall, Match] = {}
    chosen: list[Match] = []
    records: list[Record] = []
    outline = tuple(map(declared, asked))
    for composite in _with_levels(asked, outline, graph):
        found, missed = _candidates(graph, composite, hints, strict)
        records += missed

        def decide(match: Match) -> Record:
            told = (refused or {}).get((match.composite.name, match.root.name))
            refusal = told or apart(match, block_of or {})
            return _decide(graph, match, taken, strict, refusal)

        for record, match in _largest_first(found, decide, strict):
            records.append(record)
            if record.status == MATCHED:
                chosen.append(match)
                taken.update({call: match for call in match.ops})
    chosen, records = with_around(graph, chosen, records, refused or {}, block_of or {})
    chosen.sort(key=lambda m: graph.position(m.root))
    owner = owners(chosen)
    ops = tuple((c.name, c.kind, owner.get(c, "")) for c in graph.ops if c.sources)
    edges = tuple((source, call.name) for call in graph.ops for source in sources_of(graph, call))
    return chosen, Report(
        tuple(records), ops, outline, edges, graph.absorbed, problems,
        costs=_costs(graph), origins=tuple(origins(graph).items()),
    )  # fmt: skip


def _with_levels(
    asked: Sequence[Composite], outline: Sequence[Declared], graph: OpGraph
) -> list[Composite]:
    """The composites, without ours of levels beside others in a model that has none of their kind:
    what they nearly match there is no news.
    """
    if len(asked) == 1:
        return list(asked)
    absent = set(DEQUANTIZES).difference(call.kind for call in graph.ops)
    both = zip(asked, outline, strict=True)
    return [c for c, told in both if absent.isdisjoint(told.kinds) or not is_builtin(c)]


def _costs(graph: OpGraph) -> tuple[tuple[str, int, int], ...]:
    """Bytes and operations of each op by its name, where its shapes are known."""
    found = ((call.name, cost_of(call)) for call in graph.ops if call.sources)
    return tuple((name, *cost) for name, cost in found if cost is not None)


def _hints(graph: OpGraph) -> tuple[Hints, tuple[str, ...]]:
    """By op; what goes wrong here is told, and stops nobody."""
    found: Hints = {}
    try:
        for each in declined(graph):
            found.setdefault(each.op, []).append(each)
    except Exception as err:  # of whatever rule reads an importer's form
        return {}, (f"no hints about importers: {type(err).__name__}: {err}",)
    return found, ()


def _candidates(
    graph: OpGraph, composite: Composite, hints: Hints, strict: bool
) -> tuple[list[Ways], list[Record]]:
    """Every op that the pattern could end in: a match, or a record of the nearest miss."""
    kinds = root_kinds(composite.roots[0])
    found: list[Ways] = []
    missed: list[Record] = []
    for root in graph.ops:
        if root.kind not in kinds or not root.sources:  # no sources: not an op of the model
            continue
        try:
            ways = Ways(composite, graph, root)
        except PredicateError as err:
            missed.append(_broken(Record(composite.name, root.name, BROKEN, str(err)), strict, err))
            continue
        if ways.first is None:
            miss = ways.miss
            hint = _hint(miss, hints)
            record = Record(composite.name, root.name, MISSED, str(miss), hint=hint)
            missed.append(replace(record, **vars(miss), reader=miss.reader))
        else:
            found.append(ways)
    return found, missed


def _largest_first(
    found: Iterable[Ways], decide: Callable[[Match], Record], strict: bool
) -> Iterator[tuple[Record, Match]]:
    """What is decided about each root: about its largest match, or, where that cannot be taken, the
    next one. The caller takes a match before the next is decided.
    """
    number = count()  # earlier roots first, and no two entries equal
    waiting = [(-len(m.ops), next(number), m, w.others()) for w in found if (m := w.first)]
    heapify(waiting)
    first: dict[Iterator[Match], tuple[Record, Match]] = {}  # by the ways at a root
    while waiting:
        _, _, match, others = heappop(waiting)
        record = decide(match)
        told = first.setdefault(others, (record, match))
        if record.status in (MATCHED, PART):
            yield record, match
            continue
        following = _next(others, record, strict)
        if following is None:
            yield told
        else:
            heappush(waiting, (-len(following.ops), next(number), following, others))


def _next(others: Iterator[Match], record: Record, strict: bool) -> Match | None:
    """The next match; none where a predicate raised, which a strict caller is told."""
    try:
        return next(others, None)
    except PredicateError as err:
        _broken(replace(record, reason=str(err)), strict, err)
        return None


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
    taken: dict[OpCall, Match],
    strict: bool,
    refusal: Refusal | None = None,
) -> Record:
    ops = tuple(call.name for call in match.ops)
    record = Record(match.composite.name, match.root.name, MATCHED, match.composite.why, ops)
    overlap = next((call for call in match.ops if call in taken), None)
    if overlap is not None:
        return _overlapping(record, overlap, match, taken)
    refusal = refusal or not_cut_out(graph, match) or _checked(match, strict) or _unread(match)
    if refusal is not None:
        return replace(record, **vars(refusal))
    return of_match(graph, record, match)


def _overlapping(record: Record, call: OpCall, match: Match, taken: dict[OpCall, Match]) -> Record:
    """Taken by an earlier match; by a larger one of the same composite, it is just part of that."""
    owner = taken[call]
    name, root = owner.composite.name, owner.root.name
    record = replace(record, where=call.name, owner=name, owner_root=root)
    if owner.composite is match.composite and all(taken.get(c) is owner for c in match.ops):
        reason = f"part of the larger match at {root}"
        return replace(record, status=PART, cause=LARGER, reason=reason)
    reason = f"{call.name} belongs to {name} at {root}"
    return replace(record, status=TAKEN, cause=OVERLAP, reason=reason)


def _unread(match: Match) -> Refusal | None:
    """An attribute that the composite does not look at, of which its kernel would be wrong."""
    from ..codegen.unread_attributes import unread

    found = unread(match)
    if found is None:
        return None
    (call, name), told = found, match.composite.name
    text = f"{call.name} has {name}={call.attrs[name]!r}, which {told} does not look at"
    return Refusal(ATTRIBUTE, text, call.name, found=f"{name}={call.attrs[name]!r}")


def _checked(match: Match, strict: bool) -> Refusal | None:
    """What the composite's check says."""
    from ..language.composite import Refused

    if match.composite.check is None:
        return None
    try:
        said: Any = match.composite.check(match)
    except Refused as refusal:
        return Refusal(CHECK, str(refusal))
    except Exception as err:  # whatever a check raises is its own error, with its name
        text = f"its check raised {type(err).__name__}: {err}"
        if strict:
            text = f"composite {match.composite.name}: {text}{own_lines(err)}"
            raise CompositeError(text) from err
        return Refusal(RAISED, text, status=BROKEN)
    if said is None:
        return None
    text = f"its check returned {said!r}; a check refuses with require(condition, reason)"
    if strict:
        raise CompositeError(f"composite {match.composite.name}: {text}, and returns nothing")
    return Refusal(RAISED, text, status=BROKEN)
