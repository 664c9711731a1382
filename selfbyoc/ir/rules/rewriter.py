"""What the rules of canonicalisation share: questions to the graph, and how a rule answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...graph import Graph, OpCall, OpGraph, Value


@dataclass(frozen=True)
class Declined:
    """Why a rule could not read an op away, or as what it nearly is."""

    op: str
    kind: str  # what would have been there instead
    reason: str


class Draft:
    """A graph while rules rewrite it: answers as an OpGraph, and changes in place, so that a
    network of a thousand ops and rewrites is not indexed a thousand times.
    """

    def __init__(self, graph: OpGraph) -> None:
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self._slots = [[call] for call in graph.ops]
        self._at = {call: n for n, call in enumerate(graph.ops)}
        self._returned = set(graph.outputs)
        self._producers: dict[Value, OpCall] = {}
        self._users: dict[Value, list[OpCall]] = {}
        for call in graph.ops:
            self._add(call)

    @property
    def ops(self) -> tuple[OpCall, ...]:
        """In topological order."""
        return tuple(call for slot in self._slots for call in slot)

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, position: int) -> tuple[OpCall, ...]:
        """What stands for the op that was written at a position."""
        return tuple(self._slots[position])

    def producer(self, value: Value) -> OpCall | None:
        """The op that computes a value, or None for an input or a constant."""
        return self._producers.get(value)

    def users(self, value: Value) -> list[OpCall]:
        """The ops that read a value, in order."""
        return sorted(self._users.get(value, []), key=lambda call: self._at[call])

    def is_output(self, value: Value) -> bool:
        """Whether the graph returns the value."""
        return value in self._returned

    def in_order(self, calls: Iterable[OpCall]) -> tuple[OpCall, ...]:
        """Some of its ops in topological order, each once."""
        return tuple(sorted(set(calls), key=self._place))

    def _place(self, call: OpCall) -> tuple[int, int]:
        slot = self._at[call]
        return slot, self._slots[slot].index(call)

    def replace(self, call: OpCall, stand_in: Sequence[OpCall], absorbed: Sequence[OpCall]) -> None:
        """Ops in the place of one, and without those that they absorbed."""
        slot = self._slots[self._at[call]]
        where = slot.index(call)
        for old in (call, *absorbed):
            self._remove(old)
        slot[where : where + 1] = stand_in
        for new in stand_in:
            self._at[new] = self._at[call]
            self._add(new)
        for old in absorbed:
            self._slots[self._at[old]].remove(old)

    def _add(self, call: OpCall) -> None:
        self._producers.update({value: call for value in call.outputs})
        for read in set(call.inputs):
            self._users.setdefault(read, []).append(call)

    def _remove(self, call: OpCall) -> None:
        for value in call.outputs:
            if self._producers.get(value) is call:
                del self._producers[value]
        for read in set(call.inputs):
            self._users[read].remove(call)


class Rewriter:
    """What rules ask of the graph, and what they could nearly rewrite."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.declined: list[Declined] = []

    def producer(self, value: Value, kind: str | None = None) -> OpCall | None:
        """The op that computes the value, if it is of this kind."""
        call = self.graph.producer(value)
        return call if call is not None and kind in (None, call.kind) else None

    def only_reader(self, value: Value) -> bool:
        """Whether the value has a single reader and is not returned, so that its op can be
        absorbed.
        """
        return len(self.graph.users(value)) == 1 and not self.graph.is_output(value)

    def read_once(self, value: Value) -> bool:
        """The same, where one input of the reader is replaced: both sides of a product may be one
        value.
        """
        (reader, *others) = self.graph.users(value) or (None,)
        if reader is None or others or self.graph.is_output(value):
            return False
        return sum(read is value for read in reader.inputs) == 1

    def decline(self, call: OpCall, kind: str, reason: str) -> None:
        """Say why no op of `kind` is read here; the rule then returns None."""
        self.declined.append(Declined(call.name, kind, reason))


# What a rule returns: the ops that stand in for the call, and the ops that it absorbed.
Rewrite = tuple[list[OpCall], list[OpCall]]
Rule = Callable[[Rewriter, OpCall], "Rewrite | None"]


def absorb(call: OpCall, absorbed: list[OpCall], **changes: object) -> OpCall:
    """`call` changed, with the IR nodes of the absorbed ops among its own."""
    sources = tuple(s for other in absorbed for s in other.sources) + call.sources
    return replace(call, sources=sources, **changes)  # type: ignore[arg-type]


def is_scalar(value: Value, wanted: float) -> bool:
    """Whether the value is this constant."""
    return value.scalar is not None and math.isclose(float(value.scalar), wanted, rel_tol=2e-4)


def either_order(call: OpCall) -> list[tuple[Value, Value]]:
    """The two inputs of a commutative op, both ways."""
    return [(call.inputs[0], call.inputs[1]), (call.inputs[1], call.inputs[0])]
