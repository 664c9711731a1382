"""A reading found again on a graph of the same ops, in whatever order and with whatever names: by
what each reads, without asking the pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations
from typing import TYPE_CHECKING

from ...graph import OpCall, OpGraph, Value, name_ops
from .bound import Input
from .match import Match
from .reading import LEAF, Part, Reading, Ref

if TYPE_CHECKING:
    from ..composite import Composite

MOST_ORDERS = 720  # of outputs that are tried


@dataclass(frozen=True)
class Paired:
    """What the numbers of a reading are on a graph."""

    reading: Reading
    graph: OpGraph
    ops: dict[int, OpCall] = field(default_factory=dict)
    leaves: dict[int, Value] = field(default_factory=dict)

    def fits(self, outputs: Sequence[tuple[Ref, Value]]) -> bool:
        """Pair what these outputs are computed from; -> whether that is the same."""
        waiting = list(outputs)
        while waiting:
            (number, index), value = waiting.pop()
            if number == LEAF:
                if self.leaves.setdefault(index, value) is not value:
                    return False
                continue
            found = self._op(number, index, value)
            if found is None:
                return False
            waiting += found
        return self._is_whole()

    def _op(self, number: int, index: int, value: Value) -> list[tuple[Ref, Value]] | None:
        """What an op that is met for the first time reads; None where it is not that op."""
        call, step = self.graph.producer(value), self.reading.steps[number]
        if call is None or self.ops.get(number, call) is not call:
            return None
        shape = call.kind, len(call.inputs), len(call.outputs)
        if shape != (step.kind, len(step.inputs), step.outputs):
            return None
        if call.outputs[index] is not value:
            return None
        if number in self.ops:
            return []
        self.ops[number] = call
        return list(zip(step.inputs, call.inputs, strict=True))

    def _is_whole(self) -> bool:
        """Whether each op is one of the graph, and no op of the IR is another."""
        calls = set(self.ops.values())
        is_one_each = len(calls) == len(self.ops) == len(self.reading.steps)
        leaves = (self.graph.producer(value) for value in self.leaves.values())
        is_leaf = not any(call is not None and call.sources for call in leaves)
        return is_one_each and is_leaf and all(c in calls for c in self.graph.ops if c.sources)

    def value(self, ref: Ref) -> Value:
        """What a ref stands for."""
        number, index = ref
        return self.leaves[index] if number == LEAF else self.ops[number].outputs[index]

    def calls(self, numbers: Iterable[int]) -> tuple[OpCall, ...]:
        """The ops of some numbers."""
        return tuple(self.ops[number] for number in numbers)


def paired(reading: Reading, graph: OpGraph) -> Paired | None:
    """A reading on a graph of the same ops; None where they are others, or joined otherwise."""
    if reading.inputs not in (0, len(graph.inputs)):
        return None
    pinned = dict(enumerate(graph.inputs[: reading.inputs]))
    for outputs in _orders(reading.outputs, len(graph.outputs)):
        found = Paired(reading, graph, {}, dict(pinned))
        if found.fits(list(zip(outputs, graph.outputs, strict=True))):
            return found
    return None


def _orders(outputs: Sequence[Ref], asked: int) -> Iterator[tuple[Ref, ...]]:
    """Outputs of a reading as those of a graph, which may be some of them in another order."""
    return islice(permutations(outputs, asked), MOST_ORDERS)


def in_its_order(reading: Reading, graph: OpGraph) -> OpGraph | None:
    """A graph with its ops in the order of its reading, and named so; None of another one."""
    found = paired(reading, graph)
    if found is None:
        return None
    ops = _with_stand_ins(found.calls(range(len(reading.steps))), graph)
    if ops == tuple(graph.ops):
        return graph
    return OpGraph(graph.inputs, name_ops(ops), graph.outputs, graph.absorbed)


def _with_stand_ins(calls: Sequence[OpCall], graph: OpGraph) -> tuple[OpCall, ...]:
    """Ops of a graph, with those that stand for no op of the IR before their first readers."""
    found = dict.fromkeys(calls, False)  # whether an op has its place

    def placed(call: OpCall) -> Iterator[OpCall]:
        for before in map(graph.producer, call.inputs):
            if before is not None and before not in found:
                found[before] = True
                yield from placed(before)
        yield call

    return tuple(op for call in calls for op in placed(call))


def match_as_read(composite: Composite, reading: Reading, graph: OpGraph) -> Match | None:
    """The match of a reading on a graph; None where it is not of this graph, or not of this
    composite.
    """
    found = paired(reading, graph)
    if found is None or reading.names != tuple(composite.arg_names):
        return None
    whole = _match(composite, found, graph, reading.whole)
    if reading.core is None:
        return whole
    before = {name: graph.in_order(found.calls(ops)) for name, ops in reading.before}
    return Match(
        composite, whole.args, whole.ops, whole.outputs, whole.roles,
        core=_match(composite, found, graph, reading.core),
        after=graph.in_order(found.calls(reading.after)), before=before,
    )  # fmt: skip


def _match(composite: Composite, found: Paired, graph: OpGraph, part: Part) -> Match:
    args: Mapping[str, Value] = {name: found.value(ref) for name, ref in part.args}
    roles: dict[Input, str] = {(found.ops[n], i): name for n, i, name in part.roles}
    outputs = tuple(map(found.value, part.outputs))
    return Match(composite, args, graph.in_order(found.calls(part.ops)), outputs, roles)
