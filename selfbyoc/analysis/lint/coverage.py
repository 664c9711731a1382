"""What the cases of a composite exercise of its pattern, and what no case does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...ir.generation import writer
from ...language.composite import Composite
from ...language.growing import Elementwise, Repeat
from ...language.match.bound import Bound
from ...language.match.match import Ways
from ...language.nodes import Arg, Either, Item, Many, Node, Op
from ..kernels import Kernel
from .declaration import nodes


@dataclass
class Seen:
    """What the cases of one composite exercised."""

    options: set[tuple[Node, int]] = field(default_factory=set)  # (an either, option)
    many: set[Node] = field(default_factory=set)  # what may be repeated, where it was
    matched: bool = False
    reference: bool = False
    unread: str = ""  # why a case's match is not compared with the reference


def cover(composite: Composite, kernel: Kernel, seen: Seen) -> None:
    """Note which options of the pattern the match took."""
    graph = kernel.source.graph
    for call in reversed([call for call in graph.ops if call.sources]):
        bound = next(Ways(composite, graph, call).bounds(), None)
        if bound is None:
            continue
        seen.many |= {n for n, count in bound.counts if count > isinstance(n, Repeat)}
        for root in composite.roots:
            _walk(root, bound, seen)
        return


def _walk(node: Node, bound: Bound, seen: Seen) -> None:
    if isinstance(node, Many):
        seen.many.add(node)
        return
    if not isinstance(node, Either):
        for child in node.below():
            _walk(child, bound, seen)
        return
    taken = next((i for i, o in enumerate(node.options) if _took_part(o, bound)), None)
    if taken is not None:
        seen.options.add((node, taken))
        _walk(node.options[taken], bound, seen)


def _took_part(node: Node, bound: Bound) -> bool:
    """Whether a node is part of the match; of the options of a choice the first that is was
    taken.
    """
    if isinstance(node, Arg):
        return node.name in bound.args
    if isinstance(node, Either):
        return any(_took_part(option, bound) for option in node.options)
    if node.grows:
        return node in bound.values
    if isinstance(node, (Op, Item)):
        return (node.of if isinstance(node, Item) else node) in bound.parts
    return True


_UNCOVERED: dict[type[Node], tuple[str, str]] = {
    Many: ("uncovered-many", "no case has the branches of a `many`"),
    Elementwise: ("uncovered-elementwise", "no case has an op of an `elementwise`"),
    Repeat: ("uncovered-repeat", "no case has the block of a `repeat` twice"),
}


def uncovered(composite: Composite, seen: Seen) -> Iterator[tuple[str, str]]:
    """What no case exercised: findings."""
    for node in nodes(composite.outputs):
        if type(node) in _UNCOVERED and node not in seen.many:
            yield _UNCOVERED[type(node)]
        if not isinstance(node, Either) or _inside_many(node, composite):
            continue
        for i, option in enumerate(node.options):
            if (node, i) not in seen.options and _exists_here(option):
                yield "uncovered-option", f"no case takes the option {_short(option)} of an either"
    if composite.reference is not None and not seen.reference:
        text = "no case is the pattern as it stands, so that nothing checks the reference"
        text += f": {seen.unread}" if seen.unread else ""
        yield "reference-unchecked", text


def _exists_here(option: Node) -> bool:
    """Whether a case on this generation could take an option: it can write all of its ops."""
    return all(writer.function_of(n.kind) for n in nodes([option]) if isinstance(n, Op))


def _inside_many(node: Node, composite: Composite) -> bool:
    """A branch is traced anew for each input: its options cannot be told apart here."""
    outside: set[Node] = set()
    stack: list[Any] = list(composite.outputs)
    while stack:
        found = stack.pop()
        if found not in outside:
            outside.add(found)
            hidden = isinstance(found, (Many, Repeat))
            stack.extend(() if hidden else found.below())
    return node not in outside


def _short(node: Node, depth: int = 2) -> str:
    """`relu(conv2d(...))`: the outer two ops are enough to find it."""
    if isinstance(node, Either):
        return f"{_short(node.options[0], depth)} | ..."
    if isinstance(node, Item):
        return f"{_short(node.of, depth)}[{node.index}]"
    if not isinstance(node, Op):
        return repr(node)
    if depth == 0:
        return f"{node.kind}(...)"
    return f"{node.kind}({', '.join(_short(child, depth - 1) for child in node.inputs)})"
