"""A program under change: what its values are, and how each op is asked for that.

Types go from what is read to what is computed: an op is asked for its type (`give`), draws its
attributes and the types of the arguments that nobody has drawn yet; or is told it (`need`), where
what it is added to or concatenated with has one. What each kind of op does is in `rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from selfbyoc.commands.fuzz.infer import Invalid, Type, result
from selfbyoc.commands.fuzz.program import ITEM, Node, Program
from selfbyoc.ops.vocabulary import complete

from . import sizes

Shape = tuple[int, ...]
Wanted = Sequence[int | None]  # a shape; None: any extent
MOST = 1 << 30  # elements of a value


@dataclass(frozen=True)
class Rule:
    """`give(drawing, op)` draws what is below an op, `need(drawing, op, shape)` so that the result
    has a shape; `free(drawing, argument)` is a shape that the op takes, where it asks for one.
    """

    give: Callable[[Drawing, int], None]
    need: Callable[[Drawing, int, Wanted], None]
    free: Callable[[Drawing, int], Shape] | None = None

    @property
    def is_shaping(self) -> bool:
        """Whether it takes some shapes only."""
        return self.free is not None


class Drawing:
    """A program under change, and the types that are known of its nodes."""

    def __init__(self, program: Program, rng: Random, rules: Mapping[str, Rule]) -> None:
        self.program, self.rng, self.rules = program, rng, rules
        self.nodes = list(program.nodes)
        self.types: dict[int, tuple[Type, ...]] = {}
        for index, node in enumerate(self.nodes):
            if node.is_leaf and node.value is not None:
                self.types[index] = ((node.shape, node.dtype),)

    def node(self, index: int) -> Node:
        """A node as it is by now."""
        return self.nodes[index]

    def attrs(self, index: int) -> dict[str, Any]:
        """The attributes of an op, with the defaults."""
        return complete(self.nodes[index].kind, self.nodes[index].attrs)

    def set(self, index: int, **attrs: Any) -> None:
        """Other attributes for an op."""
        known = {**self.nodes[index].attrs, **attrs}
        self.nodes[index] = replace(self.nodes[index], attrs=known)

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of a node's first output, drawn by now."""
        return self.types[index][0][0]

    def give(self, index: int) -> tuple[int, ...]:
        """The shape of a node; what is not known of it yet is drawn."""
        if index in self.types:
            return self.shape(index)
        node = self.nodes[index]
        if node.is_leaf:
            free = self._first_rule(index).free
            assert free is not None
            return self.leaf(index, free(self, index))
        if node.kind == ITEM:
            self.give(node.inputs[0])
            self.types[index] = (self.types[node.inputs[0]][node.attrs["index"]],)
            return self.shape(index)
        self._rule(index).give(self, index)
        return self._typed(index)

    def need(self, index: int, wanted: Wanted) -> None:
        """Make a node have this shape; raises Invalid where it cannot."""
        if index not in self.types:
            node = self.nodes[index]
            if node.is_leaf:
                self.leaf(index, [sizes.extent(self.rng, 300) if e is None else e for e in wanted])
            elif node.kind == ITEM:
                self.need(node.inputs[0], wanted)
                self.give(index)
            else:
                self._rule(index).need(self, index, wanted)
                self._typed(index)
        found = self.shape(index)
        fits = len(found) == len(wanted)
        if not fits or any(e not in (None, f) for e, f in zip(wanted, found, strict=True)):
            raise Invalid(f"{found}, expected {tuple(wanted)}")

    def is_shared(self, index: int) -> bool:
        """Whether an argument has several readers."""
        return self.nodes[index].is_leaf and sum(index in n.inputs for n in self.nodes) > 1

    def leaf(self, index: int, shape: Sequence[int]) -> tuple[int, ...]:
        """An argument of this shape."""
        self.nodes[index] = replace(self.nodes[index], shape=tuple(shape))
        self.types[index] = ((tuple(shape), self.nodes[index].dtype),)
        return tuple(shape)

    def _typed(self, index: int) -> tuple[int, ...]:
        node = self.nodes[index]
        self.types[index] = result(node.kind, [self.types[i][0] for i in node.inputs], node.attrs)
        size = 1
        for extent in self.shape(index):
            size *= extent
        if size > MOST:
            raise Invalid("too large for any memory")
        return self.shape(index)

    def _rule(self, index: int) -> Rule:
        kind = self.nodes[index].kind
        if kind not in self.rules:
            raise NotImplementedError(f"{kind}: no rule in tools/plan_draws/rules.py draws it")
        return self.rules[kind]

    def _first_rule(self, index: int) -> Rule:
        """Of the first op that reads an argument, or what is computed of it alone, and says which
        shapes it takes.
        """
        at = index
        while not self._rule(at := self._reader(at)).is_shaping:
            pass
        return self._rule(at)

    def _reader(self, index: int) -> int:
        return next(i for i, n in enumerate(self.nodes) if index in n.inputs)
