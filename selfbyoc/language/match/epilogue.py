"""What is elementwise around a match and can be computed in its kernel: an epilogue after its
result, and a prologue before an argument.

The pattern decides what a match is; this only makes it larger, by ops that no pattern has to name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from ...graph import OpCall, OpGraph, Value
from ...ops.vocabulary import is_elementwise_kind
from ..composite import Composite
from ..outline import root_kinds
from .joining import CONDITION, WIDENS, ends_in, why_apart
from .match import Match, Ways, feeds_itself
from .match import find_whole as find_plain
from .miss import Miss

Free = Callable[[OpCall], bool]
OPERAND = "operand"  # what the ops read besides: operand_0, operand_1, ... in the order of the ops
BATCH_NORM = "batch_norm"  # of statistics that are given: a scale and a shift


@dataclass(frozen=True)
class Around:
    """The graph around matches: which of its ops may join one."""

    graph: OpGraph
    is_free: Free

    def why_not(self, call: OpCall, value: Value) -> str:
        """Why an op that reads or computes a value in the kernel cannot be computed in place;
        empty: it can.
        """
        if why := why_apart(call, value):
            return why
        if any(self._is_read(other) for other in call.outputs[1:]):
            return "more than its first result is read"
        return ""

    def joins(self, call: OpCall, value: Value) -> bool:
        """Whether an op computes each element from the same element of a value, or of others."""
        return is_elementwise(call) and self.is_free(call) and not self.why_not(call, value)

    def epilogues(self, match: Match) -> Iterator[tuple[OpCall, ...]]:
        """Chains of ops from the result of a match to a value that holds all of it, the longest
        first.
        """
        if len(match.outputs) != 1 or self.graph.is_output(match.outputs[0]):
            return
        after = self._after(match.outputs[0])
        for end in (call for call in reversed(after) if ends_in(call, match.outputs[0])):
            ops = ancestors(end, after)
            if self._is_closed(match.outputs[0], ops, end):
                yield self.graph.in_order((*ops, *self._residuals(ops, match.outputs[0])))

    def _residuals(self, ops: Sequence[OpCall], start: Value) -> Iterator[OpCall]:
        """What makes floats, or wider integers, of levels for these ops alone, as of a residual: it
        joins them. Of a gate, which is broadcast, it stays outside: an element of it has another
        place.
        """
        inside = set(ops)
        waiting = list(dict.fromkeys(self._producers([v for op in ops for v in op.inputs])))
        while waiting:
            call = waiting.pop(0)
            if call in inside or call.kind not in WIDENS or not self.joins(call, start):
                continue
            if self._only_inside(call.outputs[0], inside):
                inside.add(call)
                waiting += self._producers(call.inputs[:1])
                yield call

    def _after(self, start: Value) -> list[OpCall]:
        """The elementwise ops that are computed from a value, in topological order."""
        found: dict[OpCall, None] = {}
        waiting = [start]
        while waiting:
            for call in self.graph.users(waiting.pop()):
                if call not in found and self.joins(call, start) and _in_place(call, found, start):
                    found[call] = None
                    waiting.append(call.outputs[0])
        return list(self.graph.in_order(found))

    def _is_closed(self, start: Value, ops: Sequence[OpCall], end: OpCall) -> bool:
        """Whether nobody else reads what is computed on the way."""
        inside = set(ops)
        values = (start, *(call.outputs[0] for call in ops if call is not end))
        return not any(
            self.graph.is_output(v) or any(u not in inside for u in self.graph.users(v))
            for v in values
        )

    def prologue(self, match: Match, name: str) -> tuple[OpCall, ...]:
        """The ops before an argument that compute nothing but it, in topological order."""
        value = match.args.get(name)
        if value is None:
            return ()
        position = self.graph.position
        inside = set(match.ops)
        found: dict[OpCall, None] = {}
        waiting = [-position(call) for call in self._producers((value,))]
        heapify(waiting)
        while waiting:  # the last first: who reads a result is decided before
            call = self.graph.ops[-heappop(waiting)]
            if call in inside or not self.joins(call, value) or _has_condition(call):
                continue
            if not self._only_inside(call.outputs[0], inside):
                continue
            inside.add(call)
            found[call] = None
            for before in self._producers(call.inputs):
                heappush(waiting, -position(before))
        return self.graph.in_order(found)

    def _producers(self, values: Sequence[Value]) -> Iterator[OpCall]:
        return (call for v in values if (call := self.graph.producer(v)) is not None)

    def _only_inside(self, value: Value, inside: set[OpCall]) -> bool:
        read = all(user in inside for user in self.graph.users(value))
        return read and not self.graph.is_output(value)

    def _is_read(self, value: Value) -> bool:
        return bool(self.graph.users(value)) or self.graph.is_output(value)


def _has_condition(call: OpCall) -> bool:
    return any(v.dtype == CONDITION for v in (*call.inputs, *call.outputs))


def is_elementwise(call: OpCall) -> bool:
    """Whether an op of the model is of a kind that may be computed in place."""
    return bool(call.sources) and (call.kind == BATCH_NORM or is_elementwise_kind(call.kind))


def with_epilogue(match: Match, ops: Sequence[OpCall], graph: OpGraph) -> Match:
    """The match and the ops after it; the last of these is its new root."""
    end = ops[-1].outputs[0]
    return _larger(match, graph, replace(match, after=(*match.after, *ops), outputs=(end,)))


def with_prologue(match: Match, name: str, ops: Sequence[OpCall], graph: OpGraph) -> Match:
    """The match and the ops before one of its arguments, which is no argument then."""
    if not ops:
        return match
    before = {**match.before, name: tuple(ops)}
    args = {n: v for n, v in match.args.items() if n != name}
    return _larger(match, graph, replace(match, before=before, args=args))


def grown(match: Match, graph: OpGraph) -> Match:
    """The match on a graph that was cut out for it, with all that is elementwise around it."""
    composite, around = match.composite, Around(graph, lambda call: True)
    if composite.absorbs_after and (ops := next(around.epilogues(match), None)):
        match = with_epilogue(match, ops, graph)
    for name in composite.absorbs_before:
        match = with_prologue(match, name, around.prologue(match, name), graph)
    return match


def find_whole(
    composite: Composite, graph: OpGraph, accepts: Callable[[Match], bool]
) -> Match | Miss:
    """The match on a graph that was cut out for it: all of its ops, the elementwise ones around the
    pattern's too. `accepts` decides of what the pattern selects as partitioning does: what that
    turned down (a bias of each row, a norm along another axis) may be part of the kernel all the
    same, after its result.
    """
    found = find_plain(composite, graph)
    if not (composite.absorbs_after or composite.absorbs_before):
        return found
    real = {call for call in graph.ops if call.sources}
    is_whole = isinstance(found, Match) and real <= set(found.ops)
    if isinstance(found, Match) and is_whole and not feeds_itself(found) and accepts(found):
        return found
    kinds = root_kinds(composite.roots[0])
    for root in reversed([c for c in graph.ops if c in real and c.kind in kinds]):
        for match in filter(accepts, Ways(composite, graph, root).all()):
            if feeds_itself(match) or not _is_whole(match, graph):
                continue
            larger = grown(match, graph)
            if real <= set(larger.ops):
                return larger
    return found


def _is_whole(match: Match, graph: OpGraph) -> bool:
    """Whether nobody else reads what is between the ops of a match, its outputs aside."""
    inside, outputs = set(match.ops), set(match.outputs)
    between = (v for call in match.ops for v in call.outputs if v not in outputs)
    return all(user in inside for v in between for user in graph.users(v))


def _in_place(call: OpCall, found: Iterable[OpCall], start: Value) -> bool:
    """Whether what a batch norm or a bias is computed for is inside, not its factors; and every
    condition.
    """
    inside = {start, *(c.outputs[0] for c in found)}
    if any(v.dtype == CONDITION and v not in inside for v in call.inputs):
        return False
    return all(
        i == 0 or v.shape == start.shape or v not in inside for i, v in enumerate(call.inputs)
    )


def ancestors(end: OpCall, ops: Sequence[OpCall]) -> tuple[OpCall, ...]:
    """Those of the ops that an op is computed from, and itself."""
    needed, found = {end.outputs[0]}, []
    for call in reversed(ops):
        if call.outputs[0] in needed:
            needed |= set(call.inputs)
            found.append(call)
    return tuple(reversed(found))


def _larger(match: Match, graph: OpGraph, made: Match) -> Match:
    """All its ops in the order of the graph, and names for what the new ones read."""
    core = match.core or match
    new = [*made.after, *(call for ops in made.before.values() for call in ops)]
    ops = graph.in_order((*core.ops, *new))
    args = {n: v for n, v in core.args.items() if n not in made.before}
    known = {*args.values(), *(v for call in ops for v in call.outputs)}
    roles = dict(core.roles)
    number = 0
    for call in (c for c in ops if any(c is other for other in new)):
        for i, value in enumerate(call.inputs):
            if value not in known:
                known.add(value)
                args[f"{OPERAND}_{number}"] = value
                number += 1
            name = next((n for n, v in args.items() if v is value), "")
            if name.startswith(OPERAND):
                roles[call, i] = name
    return replace(made, core=core, ops=ops, args=args, roles=roles)
