"""What a report keeps of each composite that was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .pattern import Either, Item, Many, Node, Op

if TYPE_CHECKING:
    from ..composite import Composite


@dataclass(frozen=True)
class Declared:
    """A composite's name and the outline of its pattern."""

    name: str
    why: str
    roots: tuple[str, ...]  # the kinds of op that the pattern can end in
    kinds: tuple[str, ...]  # all kinds of op in it
    depth: int  # the most ops behind one another


def declared(composite: Composite) -> Declared:
    """The outline of a composite."""
    roots, found = sorted(root_kinds(composite.root)), sorted(kinds(composite))
    return Declared(composite.name, composite.why, tuple(roots), tuple(found), depth(composite))


def root_kinds(node: Node) -> set[str]:
    """The kinds of op that a pattern can end in."""
    if isinstance(node, Either):
        return set().union(*map(root_kinds, node.options))
    if isinstance(node, Item):
        return {node.of.kind}
    return {node.kind} if isinstance(node, Op) else set()


def kinds(composite: Composite) -> set[str]:
    """The op kinds in a composite's pattern."""
    return {
        node.kind for root in composite.outputs for node in _nodes(root) if isinstance(node, Op)
    }


def depth(composite: Composite) -> int:
    """The most ops behind one another that a pattern can take."""
    known: dict[int, int] = {}

    def longest(node: Node) -> int:
        if id(node) not in known:
            below = max(map(longest, _below(node)), default=0)
            known[id(node)] = below + isinstance(node, Op)
        return known[id(node)]

    return longest(composite.root)


def _below(node: Node) -> Iterable[Node]:
    if isinstance(node, Op):
        return node.inputs
    if isinstance(node, Either):
        return node.options
    if isinstance(node, Item):
        return (node.of,)
    return (node.instance(0),) if isinstance(node, Many) else ()


def _nodes(root: Node) -> Iterator[Node]:
    """Every node once; those of `many` as its first branch has them."""
    seen: set[int] = set()
    kept, stack = [], [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        kept.append(node)  # or the id of a branch's node could come back as another's
        stack.extend(_below(node))
        yield node
