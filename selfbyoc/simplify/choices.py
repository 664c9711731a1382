"""A choice that is the same everywhere, and known, is what it chooses.

    where(False, 0, softmax(x))  ->  softmax(x)

ONNX's Attention guards the rows that its mask hides: without a mask, or with a causal one, there
are none, and what is left is attention.
"""

from __future__ import annotations

from ..ir.rewriting import Editor, Made, are_same
from ..tvm.types import Expr


def made_choices(made: Made, to: Editor) -> Expr | None:
    """The side that a constant takes all elements of a `where` from, if it has the same shape."""
    condition = to.array(made.args[0]) if made.kind == "where" else None
    if condition is None or not condition.size or condition.any() != condition.all():
        return None
    chosen = made.args[1 if condition.all() else 2]
    shape, whole = to.shape(chosen), to.shape(made.call)
    is_whole = shape is not None and whole is not None and are_same(shape, whole)
    return chosen if is_whole and to.dtypes(chosen) == to.dtypes(made.call) else None
