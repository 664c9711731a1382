"""The halves of rotary embedding as one op, which fuses with what is around it.

    concatenate(-x[..., half:], x[..., :half])  ->  rotate_half(x)

Models write them with two slices, a negation and a concatenation, each a kernel of TVM's: of a
decoder's queries and keys eight a layer, for a token as long as everything else that is small.
"""

from __future__ import annotations

from ..ir.rewriting import Editor, Made
from ..tvm.types import Expr
from .generation import cut_of


def rotated_halves(made: Made, to: Editor) -> Expr | None:
    """What joins the halves of the last axis, the second one negated, in front."""
    if made.kind != "concatenate" or made.attrs["axis"] not in (-1, _last(made.call, to)):
        return None
    parts = to.fields(made.args[0])
    if parts is None or len(parts) != 2:
        return None
    negated, first = (to.made(part) for part in parts)
    if negated is None or first is None or negated.kind != "negative":
        return None
    second = to.made(negated.args[0])
    cuts = [None if half is None else cut_of(half.call) for half in (first, second)]
    if second is None or None in cuts or not first.args[0].same_as(second.args[0]):
        return None
    x, last = first.args[0], _last(made.call, to)
    depth = (to.shape(x) or [None])[-1]
    if not isinstance(depth, int) or depth % 2:
        return None
    read = [(cut.axis, cut.begin, cut.end) for cut in cuts if cut is not None]
    is_halves = read == [(last, 0, depth // 2), (last, depth // 2, depth)]
    return to.emit("rotate_half", x) if is_halves else None


def _last(x: Expr, to: Editor) -> int:
    return len(to.shape(x) or ()) - 1
