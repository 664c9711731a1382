"""The last ops of a pattern: the outputs that no other output is computed from."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CompositeError
from .nodes import Arg, Item, Node, Number, Op, reachable


def roots_of(owner: str, outputs: Sequence[Node]) -> tuple[Node, ...]:
    """One last op, or several side by side; these must have something in common."""
    inner = {node for output in outputs for node in reachable(output) if node is not output}
    roots = {output: output for output in outputs if output not in inner}
    known: set[object] = set()
    for root in roots.values():
        own = {n.name if isinstance(n, Arg) else n for n in reachable(root)}
        if known and not known & own:
            raise CompositeError(
                f"composite {owner}: the pattern's output {root!r} has no argument and no op in "
                f"common with those before it; expected outputs that are computed from each other "
                f"or from one value"
            )
        known |= own
    return tuple(roots.values())


def alike(roots: Sequence[Node]) -> tuple[int | None, ...]:
    """For each root the one before it that is the same but for the names of its arguments: which
    of them is which, the order of the model decides.
    """
    forms = [_form(root) for root in roots]
    return tuple(
        max((i for i in range(n) if forms[i] == form), default=None) for n, form in enumerate(forms)
    )


def _form(node: Node) -> str:
    if isinstance(node, (Arg, Number)):
        return "value" if isinstance(node, Arg) else repr(node)
    name = type(node).__name__
    if isinstance(node, Item):
        name = f"item {node.index} of"
    if isinstance(node, Op):
        name = f"{node.kind} {sorted(node.attrs.items(), key=lambda item: item[0])}"
    return f"{name}({', '.join(map(_form, node.below()))})"
