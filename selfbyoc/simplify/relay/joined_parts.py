"""Relay: what is joined and brought to another scale then, part by part: each part's requantize
joins the kernel that computes it, and what is joined are bytes.

    cast(clip(qnn.requantize(concatenate(x, y))))
      ->  concatenate(cast(clip(qnn.requantize(x))), cast(clip(qnn.requantize(y))))
"""

from __future__ import annotations

from collections import Counter

from ...ir.relay.rewrite import rewritten
from ...ir.relay.walk import children, postorder
from ...ir.rewriting import Editor, Made, size_one
from ...tvm.types import Expr, IRModule

_BEHIND = ("cast", "clip")  # a requantize, on its way to 8 bits


def requantised_by_parts(mod: IRModule) -> IRModule:
    """The typed module, requantised before it is joined; itself where nothing is so."""
    return rewritten(mod, _Parts(mod["main"].body))


class _Parts:
    """Only what one op reads: of what others read, too, the parts would be made twice."""

    def __init__(self, body: Expr) -> None:
        self.reads = Counter(child for expr in postorder(body) for child in children(expr))
        self.reads[body] += 1
        self.moved: set[Expr] = set()  # what is joined of requantised parts

    def __call__(self, made: Made, to: Editor) -> Expr | None:
        """A requantize of what is joined, or what follows one that was moved."""
        if not made.args or self.reads[made.given[0]] > 1:
            return None
        follows = made.kind in _BEHIND and made.args[0] in self.moved
        if not follows and made.kind != "requantize":
            return None
        joined, numbers = to.made(made.args[0]), made.args[1:]
        if joined is None or joined.kind != "concatenate":
            return None
        parts = to.fields(joined.args[0])
        if parts is None or not all(size_one(to, number) for number in numbers):
            return None
        levels = [to.again(made, [part, *numbers]) for part in parts]
        found = to.again(joined, [to.joined(levels)])
        self.moved.add(found)
        return found
