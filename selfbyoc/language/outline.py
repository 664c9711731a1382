"""The kinds of op in a pattern: where it can end, and what may come before what."""

from __future__ import annotations

from collections.abc import Sequence

from ..ops.vocabulary import elementwise_kinds
from .growing import Elementwise, Repeat, Rest
from .nodes import Either, Item, Node, Op


def root_kinds(node: Node) -> set[str]:
    """The kinds of op that a pattern can end in."""
    if isinstance(node, Either):
        return set().union(*map(root_kinds, node.options))
    if isinstance(node, Item):
        return {node.of.kind}
    if isinstance(node, Rest):
        return root_kinds(node.of)
    if isinstance(node, (Elementwise, Repeat)):
        last = elementwise_kinds() if isinstance(node, Elementwise) else root_kinds(node.first)
        return last | (root_kinds(node.of) if node.at_least == 0 else set())
    return _own(node)


def _own(node: Node) -> set[str]:
    """The kinds of op that a node is itself."""
    if isinstance(node, Elementwise):
        return elementwise_kinds()
    return {node.kind} if isinstance(node, Op) else set()


def kinds(roots: Sequence[Node]) -> set[str]:
    """The op kinds in a pattern."""
    outline = Outline(roots)
    return set().union(*(outline.below[root] for root in roots))


class Outline:
    """Of each node of a pattern: its children, the kinds of op from it on, and how many lie after
    one another. The branches of `many` are as the first one.
    """

    def __init__(self, roots: Sequence[Node]) -> None:
        self.nodes: list[Node] = []
        self.children: dict[Node, tuple[Node, ...]] = {}
        self.below: dict[Node, frozenset[str]] = {}
        self.depth: dict[Node, int] = {}
        for root in roots:
            self._visit(root)

    def _visit(self, node: Node) -> None:
        if node in self.children:
            return
        children = node.below()
        self.children[node] = children
        self.nodes.append(node)
        for child in children:
            self._visit(child)
        own = frozenset(_own(node))
        self.below[node] = own.union(*(self.below[c] for c in children))
        count = node.at_least if isinstance(node, Elementwise) else len(own)
        self.depth[node] = count + max((self.depth[c] for c in children), default=0)

    def pairs(self) -> set[tuple[str, str]]:
        """Of each kind of op those that may be computed from it."""
        found = set()
        for node in self.nodes:
            before = frozenset().union(*(self.below[c] for c in self.children[node]))
            if isinstance(node, Repeat):
                found |= {(a, b) for a in self.below[node] for b in self.below[node]}
            if isinstance(node, Elementwise) and node.at_most != 1:
                before |= _own(node)
            found |= {(a, b) for a in before for b in _own(node)}
        return found
