"""Fit what stands for any number of ops: chains of elementwise ops, and repeated blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...graph import Graph, OpCall, Value
from ...ops.vocabulary import elementwise_kinds
from ..growing import Elementwise, Repeat, Rest
from ..nodes import Arg, Node, as_node
from ..outline import root_kinds
from .bound import Bound, Input, Matching
from .miss import KIND, OTHER_KIND, READER, RESULT, RIGHT_KIND


@dataclass(frozen=True)
class Chain:
    """The ops on all ways from a value to another, every one elementwise."""

    start: Value
    ops: tuple[OpCall, ...]  # in topological order

    def operands(self) -> Iterator[Value]:
        """What the ops read besides the start and each other."""
        inside = {self.start, *(v for call in self.ops for v in call.outputs)}
        return (v for call in self.ops for v in call.inputs if v not in inside)

    def reader(self, graph: Graph) -> tuple[OpCall, str] | None:
        """An op before the last whose result is used elsewhere, and by whom."""
        inside = set(self.ops)
        for call in self.ops[:-1]:
            user = next((u for u in graph.users(call.outputs[0]) if u not in inside), None)
            if user is not None or graph.is_output(call.outputs[0]):
                return call, user.name if user else RESULT
        return None


def chains(matcher: Matching, node: Elementwise, value: Value, bound: Bound) -> Iterator[Bound]:
    """Every chain that ends in a value, the longest first."""
    graph = matcher.graph
    before = _elementwise_before(graph, value)
    inside, kinds = set(before), root_kinds(node.of)

    def may_start(start: Value) -> bool:
        """Not where a longer chain begins before it."""
        producer = graph.producer(start)
        if producer is None or producer not in inside or not node.of.is_op():
            return True
        return producer.kind in kinds

    for chain in _chains(before, value, may_start):
        producer = graph.producer(chain.start)
        within = producer in inside
        if not node.allows(len(chain.ops)) or any(c in bound.ops for c in chain.ops):
            continue
        if (found := chain.reader(graph)) is not None:
            call, user = found
            names = "nobody else that reads it", user
            matcher.missed(bound, RIGHT_KIND, READER, call.name, *names)
            continue
        if producer is not None and not within and node.of.is_op() and producer.kind not in kinds:
            names = "an elementwise op", f"op {producer.kind}"
            matcher.missed(bound, OTHER_KIND, KIND, producer.name, *names)
        operands = tuple((node.name, operand) for operand in chain.operands())
        for done in matcher.match(node.of, chain.start, bound):
            # The further operands in the order of the ops: those of what is before come first.
            yield replace(
                done,
                ops=(*done.ops, *chain.ops),
                operands=(*done.operands, *operands),
                counts=(*done.counts, (node, len(chain.ops))),
            )


def _elementwise_before(graph: Graph, value: Value) -> list[OpCall]:
    """The elementwise ops that a value is computed from through values of its shape."""
    kinds = elementwise_kinds()
    found: dict[OpCall, None] = {}
    waiting = [value]
    while waiting:
        call = graph.producer(waiting.pop())
        if call is None or call in found or call.kind not in kinds or len(call.outputs) > 1:
            continue
        inputs = [v for v in call.inputs if v.shape == value.shape]
        if inputs:  # else it is a broadcast
            found[call] = None
            waiting += inputs
    return list(graph.in_order(found))


def _chains(
    before: Sequence[OpCall], value: Value, may_start: Callable[[Value], bool]
) -> list[Chain]:
    """From each value on the way, longest first; of equally long ones what an op reads first."""
    inputs = [v for call in reversed(before) for v in call.inputs if v.shape == value.shape]
    starts = dict.fromkeys((*inputs, value))
    made = [Chain(start, _between(before, start)) for start in starts if may_start(start)]
    return sorted(made, key=lambda chain: -len(chain.ops))


def _between(before: Sequence[OpCall], start: Value) -> tuple[OpCall, ...]:
    """Those of the ops that are computed from a value."""
    reached, ops = {start}, []
    for call in before:
        if any(v in reached for v in call.inputs):
            reached.add(call.outputs[0])
            ops.append(call)
    return tuple(ops)


class Numbered(Arg):
    """An argument of one block, until it is known how many there are."""

    def __init__(self, base: str, of: Repeat, depth: int) -> None:
        super().__init__(f"{base}@{of.number}.{depth}")
        self.base = base

    def __repr__(self) -> str:
        return self.base


def repeats(matcher: Matching, rest: Rest, value: Value, bound: Bound) -> Iterator[Bound]:
    """As many blocks as fit, then fewer: from the last one back."""
    node, depth = rest.of, rest.depth
    if node.at_most is None or depth < node.at_most:
        if (node, depth) not in matcher.blocks:
            matcher.blocks[node, depth] = _block(node, depth)
        yield from matcher.match(matcher.blocks[node, depth], value, bound)
    if depth >= node.at_least:
        for done in matcher.match(node.of, value, bound):
            yield replace(done, counts=(*done.counts, (node, depth)))


def _block(node: Repeat, depth: int) -> Node:
    """The block before which there are others, if any."""
    return as_node(node.block(Rest(node, depth + 1), lambda name: Numbered(name, node, depth)))


def arguments(
    bound: Bound, names: Sequence[str], ops: Sequence[OpCall]
) -> tuple[Mapping[str, Value], Mapping[Input, str]]:
    """The arguments of a match by their names, those that get a number with it, and which of them
    the inputs of the ops are.
    """
    if not bound.counts:
        return bound.args, bound.roles
    args = {name: value for name, value in bound.args.items() if "@" not in name}
    numbered = _number_blocks(bound, args)
    roles = {at: numbered.get(name, name) for at, name in bound.roles.items()}
    known = {*args.values(), *(v for call in ops for v in call.outputs)}
    named = {value: name for name, value in reversed(args.items())}
    numbers: dict[str, int] = {}
    for base, value in bound.operands:
        if value not in known:  # neither an argument already, nor computed inside
            known.add(value)
            named[value] = _free(base, numbers, {*args, *names})
            args[named[value]] = value
        if value in named:
            roles |= {at: named[value] for at in _readings(value, ops) if at not in roles}
    return args, roles


def _readings(value: Value, ops: Sequence[OpCall]) -> Iterator[Input]:
    """The inputs that are this value."""
    return ((call, i) for call in ops for i, v in enumerate(call.inputs) if v is value)


def _number_blocks(bound: Bound, args: dict[str, Value]) -> dict[str, str]:
    """The first block's are `name_0`, a second repetition of the same name goes on; -> what each is
    called now.
    """
    offset: dict[str, int] = {}
    numbered: dict[str, str] = {}
    for node, count in bound.counts:
        for base in sorted(node.names) if isinstance(node, Repeat) else ():
            first = offset.get(base, 0)
            for number in range(count):
                asked = f"{base}@{node.number}.{count - 1 - number}"
                value = bound.args.get(asked)
                if value is not None:  # an option may do without
                    numbered[asked] = f"{base}_{first + number}"
                    args[numbered[asked]] = value
            offset[base] = first + count
    return numbered


def _free(base: str, numbers: dict[str, int], taken: set[str]) -> str:
    """The next number that nobody has."""
    while True:
        number = numbers.get(base, 0)
        numbers[base] = number + 1
        if (name := f"{base}_{number}") not in taken:
            return name
