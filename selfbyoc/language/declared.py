"""What a report keeps of each composite that was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .pattern import Either, Item, Node, Op, below

if TYPE_CHECKING:
    from .composite import Composite


@dataclass(frozen=True)
class Declared:
    """A composite's name and the outline of its pattern."""

    name: str
    why: str
    roots: tuple[str, ...]  # the kinds of op that the pattern can end in
    kinds: tuple[str, ...]  # all kinds of op in it
    depth: int  # the most ops after one another
    before: tuple[tuple[str, str], ...]  # (kind, kind of an op that is computed from it)

    def can_hold(self, kind_a: str, kind_b: str, in_order: bool) -> bool:
        """Whether the pattern has both kinds; `in_order`: the second computed from the first."""
        if in_order:
            return (kind_a, kind_b) in self.before
        return kind_a in self.kinds and kind_b in self.kinds


def declared(composite: Composite) -> Declared:
    """The outline of a composite."""
    outline = _Outline(composite.root)
    below = outline.below[id(composite.root)]
    pairs = {
        (kind, node.kind)
        for node in outline.nodes
        if isinstance(node, Op)
        for child in outline.children[id(node)]
        for kind in outline.below[id(child)]
    }
    return Declared(
        composite.name,
        composite.why,
        tuple(sorted(root_kinds(composite.root))),
        tuple(sorted(below)),
        outline.depth[id(composite.root)],
        tuple(sorted(pairs)),
    )


def root_kinds(node: Node) -> set[str]:
    """The kinds of op that a pattern can end in."""
    if isinstance(node, Either):
        return set().union(*map(root_kinds, node.options))
    if isinstance(node, Item):
        return {node.of.kind}
    return {node.kind} if isinstance(node, Op) else set()


def kinds(composite: Composite) -> set[str]:
    """The op kinds in a composite's pattern: one output is computed from all the others."""
    return set(declared(composite).kinds)


class _Outline:
    """Of each node of a pattern: its children, the kinds of op from it on, and how many lie after
    one another. The branches of `many` are as the first one.
    """

    def __init__(self, root: Node) -> None:
        self.nodes: list[Node] = []  # kept, so that no id comes back
        self.children: dict[int, tuple[Node, ...]] = {}
        self.below: dict[int, frozenset[str]] = {}
        self.depth: dict[int, int] = {}
        self._visit(root)

    def _visit(self, node: Node) -> None:
        if id(node) in self.children:
            return
        children = below(node)
        self.children[id(node)] = children
        self.nodes.append(node)
        for child in children:
            self._visit(child)
        own = frozenset([node.kind] if isinstance(node, Op) else [])
        self.below[id(node)] = own.union(*(self.below[id(c)] for c in children))
        self.depth[id(node)] = len(own) + max((self.depth[id(c)] for c in children), default=0)
