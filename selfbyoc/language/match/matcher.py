"""Fit the nodes of a pattern to the values of an OpGraph: every way in which they do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ...graph import Graph, OpCall, Value
from ...ops.vocabulary import KINDS
from ...tvm.types import Attr
from ..growing import Elementwise, Repeat, Rest
from ..nodes import Arg, Either, Item, Many, Node, Number, Op
from .attribute import asked, compared, equal_number, wanted_text
from .bound import Bound
from .growing import chains, repeats
from .miss import (
    ANOTHER,
    ATTRIBUTE,
    CONSTANT,
    ELSEWHERE,
    INPUTS,
    KIND,
    LEAF,
    NO_OP,
    OTHER_KIND,
    OUTPUT,
    RIGHT_KIND,
    TWICE,
    VALUE,
    Miss,
    Nearest,
)


class Matcher:
    """Tries one pattern on one graph and remembers the nearest miss; `kinds` of ops are those that
    the pattern has.
    """

    def __init__(self, graph: Graph, kinds: Collection[str] = ()) -> None:
        self.graph, self.kinds = graph, kinds
        self.nearest = Nearest()
        self.blocks: dict[tuple[Node, int], Node] = {}  # of repetitions, by their number

    def missed(self, bound: Bound, near: int, *difference: Attr) -> None:
        score = (bound.level + len(bound.ops), near)
        if score >= self.nearest.score:  # most are not, and need no object
            self.nearest.add(score, Miss(*difference))

    def match(self, node: Node, value: Value, bound: Bound) -> Iterator[Bound]:
        """Every way in which `node` fits `value`, given what is bound already."""
        if isinstance(node, Arg):
            yield from self._arg(node, value, bound)
        elif isinstance(node, Number):
            yield from self._number(node, value, bound)
        elif isinstance(node, Either):
            for option in node.options:
                for done in self.match(option, value, bound):
                    yield replace(done, values={**done.values, node: value})
        elif isinstance(node, Item):
            yield from self._op(node.of, node.index, value, bound)
        elif isinstance(node, Op):
            yield from self._op(node, 0, value, bound)
        elif isinstance(node, Rest):
            yield from repeats(self, node, value, bound)
        elif isinstance(node, (Elementwise, Repeat)):
            yield from self._growing(node, value, bound)

    def _growing(self, node: Elementwise | Repeat, value: Value, bound: Bound) -> Iterator[Bound]:
        known = bound.values.get(node)
        if known is not None:  # the pattern uses the node twice
            yield from (bound,) if known is value else ()
            return
        if isinstance(node, Elementwise):
            ways = chains(self, node, value, bound)
        else:
            ways = repeats(self, Rest(node, 0), value, bound)
        for done in ways:
            yield replace(done, values={**done.values, node: value})

    def _number(self, node: Number, value: Value, bound: Bound) -> Iterator[Bound]:
        scalar = value.scalar
        if scalar is not None and equal_number(float(scalar), node.value):
            yield bound
            return
        found = _leaf(value) if scalar is None else str(scalar)
        wanted = f"the constant {node.value}"
        self.missed(bound, RIGHT_KIND, CONSTANT, bound.reader or "constant", wanted, found)

    def _arg(self, node: Arg, value: Value, bound: Bound) -> Iterator[Bound]:
        known = bound.args.get(node.name)
        if node.is_number and value.scalar is None:
            wanted = "a constant of one element"
            self.missed(
                bound, RIGHT_KIND, CONSTANT, bound.reader or node.name, wanted, _leaf(value)
            )
        elif known is None or known is value:
            args = bound.args if known is value else {**bound.args, node.name: value}
            at = () if bound.at is None else (bound.at,)
            yield replace(bound, args=args, roles={**bound.roles, **dict.fromkeys(at, node.name)})
        else:
            wanted = f"the same value as {known!r}"
            self.missed(bound, RIGHT_KIND, VALUE, str(node), wanted, f"{value!r}")

    def _op(self, node: Op, index: int, value: Value, bound: Bound) -> Iterator[Bound]:
        call = self.graph.producer(value)
        if call is None:
            where = bound.reader if value.is_constant else value.name or bound.reader
            self.missed(bound, LEAF, NO_OP, where, f"op {node.kind}", _leaf(value))
            return
        if call.kind != node.kind:
            names = f"op {node.kind}", f"op {call.kind}"
            near = ELSEWHERE if call.kind in self.kinds else OTHER_KIND
            self.missed(bound, near, KIND, call.name, *names)
            return
        if index >= len(call.outputs) or call.outputs[index] is not value:
            wanted, found = f"output {index} of {node.kind}", "another of its outputs"
            self.missed(bound, RIGHT_KIND, OUTPUT, call.name, wanted, found)
            return
        if node in bound.parts or any(call is taken for taken in bound.ops):
            # One op cannot play two parts, except where the pattern uses one node twice.
            if bound.parts.get(node) is call:
                yield bound
            else:
                wanted, found = f"another {node.kind}", "an op that is taken already"
                self.missed(bound, RIGHT_KIND, TWICE, call.name, wanted, found)
            return
        if not self._attrs_fit(node, call, bound):
            return
        entered = replace(bound, level=bound.level + 1, reader=call.name)
        for done in self._inputs(node, call, entered):
            parts = {**done.parts, node: call}
            ops = (*done.ops, call)
            yield replace(done, ops=ops, parts=parts, level=bound.level, reader=bound.reader)

    def _attrs_fit(self, node: Op, call: OpCall, bound: Bound) -> bool:
        for name, wanted in node.attrs.items():
            found = call.attrs.get(name)
            if callable(wanted):
                cause, fits = ANOTHER, asked(wanted, name, found)
            else:
                cause = ATTRIBUTE
                wanted, fits = compared(wanted, name, found)
            if not fits:
                difference = f"{name}={wanted_text(wanted)}"
                self.missed(
                    bound, RIGHT_KIND, cause, call.name, difference, f"{name}={found!r}", name
                )
                return False
        return True

    def _inputs(self, node: Op, call: OpCall, bound: Bound) -> Iterator[Bound]:
        nodes = node.inputs
        if isinstance(many := nodes[0], Many):
            if len(call.inputs) < many.at_least:
                wanted, found = f"{many.at_least} inputs or more", _inputs_of(call)
                self.missed(bound, RIGHT_KIND, INPUTS, call.name, wanted, found)
                return
            nodes = tuple(many.instance(i) for i in range(len(call.inputs)))
        if len(nodes) != len(call.inputs):
            wanted, found = f"{len(nodes)} inputs", _inputs_of(call)
            self.missed(bound, RIGHT_KIND, INPUTS, call.name, wanted, found)
            return
        order = range(len(nodes))
        yield from self._all(nodes, call, order, bound)
        if KINDS[node.kind].is_commutative:
            yield from self._all(nodes, call, order[::-1], bound)

    def _all(
        self, nodes: tuple[Node, ...], call: OpCall, order: Sequence[int], bound: Bound
    ) -> Iterator[Bound]:
        """Each node on the input of the op whose turn it is."""
        if not nodes:
            yield bound
            return
        first, *rest = order
        if isinstance(nodes[0], Number) and (grown := _grown(call, first)):
            wanted = f"the constant {nodes[0].value} of no more axes than {grown.type}"
            self.missed(bound, RIGHT_KIND, CONSTANT, call.name, wanted, _leaf(call.inputs[first]))
            return
        here = replace(bound, at=(call, first))
        for done in self.match(nodes[0], call.inputs[first], here):
            yield from self._all(nodes[1:], call, rest, done)


def _inputs_of(call: OpCall) -> str:
    return f"{len(call.inputs)} input{'s' * (len(call.inputs) != 1)}"


def _grown(call: OpCall, index: int) -> Value | None:
    """The tensor beside a constant that has so many axes that the result has more than it."""
    others = [v for i, v in enumerate(call.inputs) if i != index and v.scalar is None]
    grown = bool(others) and all(v.ndim < call.inputs[index].ndim for v in others)
    return others[0] if grown else None


def _leaf(value: Value) -> str:
    return f"{'a constant' if value.is_constant else 'an input'}, {value.type}"
