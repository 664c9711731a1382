"""What a pattern selected in an OpGraph: the one place that decides what a composite takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...graph import OpCall, OpGraph, Value
from ..nodes import Item, Node
from ..outline import root_kinds
from ..roots import alike
from .bound import Bound, Input
from .growing import arguments
from .matcher import Matcher
from .miss import LEAF, OUTPUT, RIGHT_KIND, Miss

if TYPE_CHECKING:
    from ..composite import Composite


@dataclass(frozen=True)
class Match:
    """What a pattern selected. Arguments are attributes: `match.x.shape`; an unused optional one is
    None.
    """

    composite: Composite
    args: Mapping[str, Value]
    ops: tuple[OpCall, ...]
    outputs: tuple[Value, ...]
    # Which argument the inputs of the ops are: one value may be several
    roles: Mapping[Input, str] = field(default_factory=dict, repr=False)
    # Of a match that took in what is elementwise around it (epilogue.py): what the pattern
    # selected, the ops after its result, and those before an argument
    core: Match | None = field(default=None, repr=False)
    after: tuple[OpCall, ...] = ()
    before: Mapping[str, tuple[OpCall, ...]] = field(default_factory=dict)

    @property
    def own(self) -> Match:
        """What the pattern selected: all that plan, pack and compute of the composite see."""
        return self.core or self

    def with_ops(self, ops: Sequence[OpCall]) -> Match:
        """The same match with another op for each."""
        new = {call: other for call, other in zip(self.ops, ops, strict=True)}
        roles = {(new[at], index): name for (at, index), name in self.roles.items() if at in new}
        return replace(self, ops=tuple(ops), roles=roles)

    def role(self, call: OpCall, index: int) -> str:
        """The argument that an input of a matched op is; empty for what is computed inside."""
        return self.roles.get((call, index), "")

    @property
    def root(self) -> OpCall:
        """The last op: it is computed from all the others, or is the last beside such."""
        return self.ops[-1]

    @property
    def result(self) -> Value:
        """The output that the last op computes."""
        return next(v for v in self.outputs if any(v is out for out in self.root.outputs))

    def __getattr__(self, name: str) -> Any:  # a Value; None for what this match has not
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self.args:
            return self.args[name]
        if name in self.composite.arg_names:
            return None
        raise AttributeError(
            f"composite {self.composite.name}: no argument {name!r}; "
            f"the match has {list(self.args)}"
        )

    def of(self, kind: str) -> list[OpCall]:
        """The matched ops of one kind, in topological order."""
        return [call for call in self.ops if call.kind == kind]

    def op(self, kind: str) -> OpCall:
        """The first matched op of a kind."""
        found = self.of(kind)
        if not found:
            raise AttributeError(
                f"composite {self.composite.name}: no {kind} among {[c.kind for c in self.ops]}"
            )
        return found[0]


MOST_WAYS = 256  # at one op: more are asked of no pattern


class Ways:
    """Every way in which a composite fits with `root` as its last op (of several the first in the
    pattern), the one to prefer first.
    """

    def __init__(self, composite: Composite, graph: OpGraph, root: OpCall) -> None:
        self.composite, self.root, self.graph = composite, root, graph
        self.matcher = Matcher(graph, composite.kinds)
        self._made = self._matches()
        if len(composite.roots) > 1:  # one of them may be larger where another is smaller
            some = islice(self._made, MOST_WAYS)
            self._made = iter(sorted(some, key=lambda match: -len(match.ops)))
        self.first = next(self._made, None)

    @property
    def miss(self) -> Miss:
        """The nearest miss, where there is no way."""
        found = self.matcher.nearest.miss
        return found or Miss(OUTPUT, self.root.name, "a result", "none")

    def all(self) -> Iterator[Match]:
        """The first and the others."""
        if self.first is not None:
            yield self.first
            yield from self.others()

    def others(self) -> Iterator[Match]:
        """Those after the first: of as many ops, where a sum is read from its other side; of a
        pattern that grows also with fewer, or from elsewhere on.
        """
        if self.first is None:
            return
        taken, size = {self._key(self.first)}, len(self.first.ops)
        for match in islice(self._made, MOST_WAYS):
            is_asked = self.composite.grows or len(match.ops) == size
            if is_asked and (key := self._key(match)) not in taken:
                taken.add(key)
                yield match

    @staticmethod
    def _key(match: Match) -> frozenset[OpCall]:
        return frozenset(match.ops)

    def _matches(self) -> Iterator[Match]:
        composite = self.composite
        for bound in self.bounds():
            absent = next((n for n in composite.outputs if not _took_part(n, bound)), None)
            if absent is not None:  # an alternative without it was taken
                wanted = f"{absent!r}, an output of the pattern"
                score = (len(bound.ops), RIGHT_KIND)
                self.matcher.nearest.add(score, Miss(OUTPUT, self.root.name, wanted, "none"))
                continue
            ops = self.graph.in_order(bound.ops)
            outputs = tuple(_value_of(node, bound) for node in composite.outputs)
            args, roles = arguments(bound, composite.arg_names, ops)
            yield Match(composite, args, ops, outputs, roles)

    def bounds(self) -> Iterator[Bound]:
        """Every way, as what each node stands for."""
        for value in self.root.outputs:
            for bound in self.matcher.match(self.composite.roots[0], value, Bound()):
                yield from self._beside((self.root,), bound)

    def _beside(self, found: tuple[OpCall, ...], bound: Bound) -> Iterator[Bound]:
        """The further last ops, where the pattern has several; `found` are those so far. Of what is
        alike, the order of the graph decides which is which.
        """
        number = len(found)
        if number == len(self.composite.roots):
            yield bound
            return
        node, graph = self.composite.roots[number], self.graph
        kinds, before = root_kinds(node), alike(self.composite.roots)[number]
        start = 0 if before is None else graph.position(found[before]) + 1
        names = f"{node!r} beside it", "none"
        self.matcher.missed(bound, LEAF, OUTPUT, found[0].name, *names)
        for call in graph.ops[start:]:
            for value in call.outputs if call.kind in kinds and call.sources else ():
                for done in self.matcher.match(node, value, bound):
                    yield from self._beside((*found, call), done)


def find(composite: Composite, graph: OpGraph, root: OpCall) -> Match | Miss:
    """Match the composite with `root` as its last op; the nearest miss if it does not fit."""
    ways = Ways(composite, graph, root)
    return ways.first or ways.miss


def find_whole(composite: Composite, graph: OpGraph) -> Match | Miss:
    """The match on a graph that was cut out for it: of several ways the one that takes all ops."""
    real = [call for call in graph.ops if call.sources]
    last = Ways(composite, graph, real[-1])
    first = [] if len(composite.roots) == 1 else (Ways(composite, graph, op) for op in real[:-1])
    for ways in (*first, last):
        for match in ways.all():
            if set(real) <= set(match.ops) and not feeds_itself(match):
                return match
    return last.first or last.miss


def feeds_itself(match: Match) -> bool:
    """Whether an argument is computed inside, as in `y + y` for a product with a residual."""
    inside = {v for call in match.ops for v in call.outputs}
    return any(v in inside for v in match.args.values())


def _value_of(node: Node, bound: Bound) -> Value:
    """The value that an output node of the pattern stands for."""
    if node in bound.values:
        return bound.values[node]
    if isinstance(node, Item):
        return bound.parts[node.of].outputs[node.index]
    return bound.parts[node].outputs[0]


def _took_part(node: Node, bound: Bound) -> bool:
    found = {**bound.values, **bound.parts}
    return (node.of if isinstance(node, Item) else node) in found
