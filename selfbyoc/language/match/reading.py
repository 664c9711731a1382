"""A match as data: what partitioning read, by numbers of ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...graph import OpCall, OpGraph, Value
from .match import Match

# An op by its number, and which of its outputs; of what no op computes LEAF, and its number.
Ref = tuple[int, int]
LEAF = -1


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

    def data(self) -> list[object]:
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


def _part_data(part: Part) -> list[object]:
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
