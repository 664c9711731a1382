"""A match as data: what partitioning read, by numbers of ops; and found again on a graph of the
same ops, in whatever order and with whatever names, without asking the pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

from ..graph import OpCall, OpGraph, Value, name_ops
from .match import Match
from .matcher import Input

if TYPE_CHECKING:
    from ..language.composite import Composite

# An op by its number, and which of its outputs; of what no op computes LEAF, and its number.
Ref = tuple[int, int]
LEAF = -1
MOST_ORDERS = 720  # of outputs that are tried


@dataclass(frozen=True)
class Step:
    """One op of a reading."""

    kind: str
    inputs: tuple[Ref, ...]
    outputs: int
    is_written: bool  # in the IR; others are made up when it is read


@dataclass(frozen=True)
class Part:
    """What a match is, or what its pattern selected of it."""

    ops: tuple[int, ...]
    args: tuple[tuple[str, Ref], ...]
    outputs: tuple[Ref, ...]
    roles: tuple[tuple[int, int, str], ...]  # op, which of its inputs, argument


@dataclass(frozen=True)
class Reading:
    """A match by numbers: the ops of its graph, and which of them play which part."""

    names: tuple[str, ...]  # of the composite's arguments: those of another version may differ
    steps: tuple[Step, ...]
    inputs: int  # so many leaves, the first, are the inputs of the graph
    outputs: tuple[Ref, ...]
    whole: Part
    core: Part | None
    after: tuple[int, ...]
    before: tuple[tuple[str, tuple[int, ...]], ...]

    def data(self) -> list[Any]:
        """As lists, for an attribute."""
        core = None if self.core is None else _part_data(self.core)
        steps = [[s.kind, s.inputs, s.outputs, s.is_written] for s in self.steps]
        return [
            self.names, steps, self.inputs, self.outputs, _part_data(self.whole), core,
            self.after, self.before,
        ]  # fmt: skip

    @staticmethod
    def of(data: Sequence[Any]) -> Reading:
        """What `data` made."""
        names, steps, inputs, outputs, whole, core, after, before = data
        return Reading(
            tuple(names),
            tuple(Step(kind, _refs(ins), outs, written) for kind, ins, outs, written in steps),
            inputs,
            _refs(outputs),
            _part(whole),
            None if core is None else _part(core),
            tuple(after),
            tuple((name, tuple(ops)) for name, ops in before),
        )


def _part_data(part: Part) -> list[Any]:
    return [part.ops, part.args, part.outputs, part.roles]


def _part(data: Sequence[Any]) -> Part:
    ops, args, outputs, roles = data
    named = tuple((name, (number, index)) for name, (number, index) in args)
    return Part(tuple(ops), named, _refs(outputs), tuple((n, i, name) for n, i, name in roles))


def _refs(data: Iterable[Sequence[int]]) -> tuple[Ref, ...]:
    return tuple((number, index) for number, index in data)


def reading_of(match: Match, graph: OpGraph) -> Reading:
    """A match on a graph of nothing but it."""
    ops = _needed(graph)
    numbers = _Numbers(ops, graph.inputs)
    steps = tuple(
        Step(c.kind, numbers.refs(c.inputs), len(c.outputs), bool(c.sources)) for c in ops
    )
    return Reading(
        tuple(match.composite.arg_names),
        steps,
        len(graph.inputs),
        numbers.refs(graph.outputs),
        numbers.part(match),
        None if match.core is None else numbers.part(match.core),
        numbers.ops(match.after),
        tuple((name, numbers.ops(calls)) for name, calls in match.before.items()),
    )


def cut_out(match: Match) -> OpGraph:
    """The ops of a match as a graph; what they read is no input of it yet."""
    return OpGraph((), match.ops, match.outputs)


def _needed(graph: OpGraph) -> tuple[OpCall, ...]:
    """The ops that results are computed from, in the order of the graph."""
    found: set[OpCall] = set()
    waiting = list(graph.outputs)
    while waiting:
        call = graph.producer(waiting.pop())
        if call is not None and call not in found:
            found.add(call)
            waiting += call.inputs
    return graph.in_order(found)


class _Numbers:
    """The ops of a graph by their numbers, and its leaves by theirs."""

    def __init__(self, ops: Sequence[OpCall], inputs: Sequence[Value]) -> None:
        self.number = {call: n for n, call in enumerate(ops)}
        self.known = {v: (n, i) for n, call in enumerate(ops) for i, v in enumerate(call.outputs)}
        self.leaves = 0
        self.refs(inputs)

    def refs(self, values: Iterable[Value]) -> tuple[Ref, ...]:
        return tuple(map(self._ref, values))

    def _ref(self, value: Value) -> Ref:
        if value not in self.known:
            self.known[value] = LEAF, self.leaves
            self.leaves += 1
        return self.known[value]

    def ops(self, calls: Iterable[OpCall]) -> tuple[int, ...]:
        return tuple(self.number[call] for call in calls)

    def part(self, match: Match) -> Part:
        args = zip(match.args, self.refs(match.args.values()), strict=True)
        roles = ((self.number[c], i, n) for (c, i), n in match.roles.items() if c in self.number)
        return Part(self.ops(match.ops), tuple(args), self.refs(match.outputs), tuple(roles))


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
    ops = found.calls(range(len(reading.steps)))
    if ops == tuple(graph.ops):
        return graph
    return OpGraph(graph.inputs, name_ops(ops), graph.outputs, graph.absorbed)


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
