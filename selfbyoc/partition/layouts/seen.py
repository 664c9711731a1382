"""Tensors that a program sees in blocked layouts, while it is rewritten to plain ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...ir.rewriting import Editor, Made
from ...ops.layout_text import Parts, parts_of
from ...tvm.types import Expr, PrimExpr
from .blocks import (
    behind,
    divides,
    is_blocked,
    joined,
    plain,
    rank_of,
    through,
    unblocked,
)
from .generation import ir

Shape = Sequence[PrimExpr]


@dataclass(frozen=True)
class Seen:
    """A plain tensor, its shape, and the blocked layout in which it is seen."""

    x: Expr
    shape: Shape
    parts: Parts


class Blocks:
    """What is known of the program so far. Shapes are those of the program before: 0.17 takes long
    to infer types of what is new.
    """

    def __init__(self) -> None:
        self.known: dict[Expr, Seen] = {}

    def seen(self, x: Expr, to: Editor) -> Seen | None:
        """The plain tensor behind one with blocks."""
        made = to.made(x)
        return None if made is None else self.known.get(made.call)

    def all_seen(self, args: Sequence[Expr], to: Editor) -> Iterator[Seen]:
        """Of all that an op reads; of a tuple its fields."""
        for arg in args:
            for x in to.fields(arg) or [arg]:
                if (found := self.seen(x, to)) is not None:
                    yield found

    def wrapped(self, made: Made, x: Expr, parts: Parts, to: Editor) -> Expr:
        """The result of an op, which it computes on plain axes now, as its readers see it."""
        done = moved(x, plain(rank_of(parts)), parts, to)
        shape = to.shape(made.call)
        if is_blocked(parts) and shape is not None:
            self._note(done, Seen(x, joined(shape, parts), parts), to)
        return done

    def _note(self, done: Expr, seen: Seen, to: Editor) -> None:
        call = to.made(done)
        if call is not None:
            self.known[call.call] = seen

    def moving(self, made: Made, to: Editor) -> Expr | None:
        """A layout_transform: of one that was moved before, one or none; else as it is."""
        both = ir.moves(made)
        if both is None:
            return None
        found, (source, target) = self.seen(made.args[0], to), both
        if source == target:
            return made.args[0]
        if found is not None:
            again = through(source, target, found.parts)
            return None if again is None else self.wrapped(made, found.x, again, to)
        shape = to.shape(made.given[0])
        if source != plain(len(source)) or not divides(target, shape) or shape is None:
            return None
        if not is_blocked(target):
            return None
        done = to.again(made, made.args)
        self._note(done, Seen(made.args[0], shape, target), to)
        return done

    def in_letters(self, x: Expr, layout: str, letters: str, to: Editor) -> Expr | None:
        """A tensor that an op reads in `layout`, with its axes as `letters` has them."""
        source, target = parts_of(layout, letters), plain(len(letters))
        if source is None or source == target:
            return None if source is None else x
        array = to.array(x)
        if array is not None:
            apart = unblocked(array, source)
            return None if apart is None else to.constant(apart)
        if (found := self.seen(x, to)) is not None:
            again = through(source, target, found.parts)
            if again is not None:
                return moved(found.x, plain(rank_of(again)), again, to)
        return moved(x, source, target, to)

    def beside(self, x: Expr, given: Expr, other: Seen, to: Editor) -> Expr | None:
        """An operand, `given` before, of an op on elements that reads another in blocks: without
        them, perhaps of fewer axes. None of one that is in other blocks.
        """
        own = to.shape(given)
        if not own:
            return x if own is not None or not to.is_tensor(given) else None
        last = behind(other.parts, len(own))
        if (found := self.seen(x, to)) is not None:
            return found.x if found.parts == last else None
        array = to.array(x)
        if array is None:
            return None
        if array.size == 1:
            return to.constant(array.reshape(()))
        if last is None:
            return None
        apart = unblocked(array, last, other.shape[-rank_of(last) :])
        return None if apart is None else to.constant(apart)


def moved(x: Expr, source: Parts, target: Parts, to: Editor) -> Expr:
    """A tensor in another layout; a transpose where that has no blocks."""
    if source == target:
        return x
    if is_blocked(source) or is_blocked(target):
        return ir.moved(to, x, source, target)
    order = [axis for axis, _ in source]
    return to.emit("transpose", x, axes=tuple(order.index(axis) for axis, _ in target))
