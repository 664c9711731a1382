"""What stands between two views of a batch of matrices, the second of which undoes the first, is
computed in the axes of before.

    reshape(softmax(reshape(scores, (2, 12, n, m)) + mask), (24, n, m))  ->  softmax(scores + mask')

Models that multiply the heads of all sentences as one batch (BART, Marian, Whisper and Bloom, as
they were exported for years) add their masks so; without the views all is one attention kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir.rewriting import Editor, Made, are_same, is_known, size_one
from ..ops.vocabulary import is_elementwise_kind
from ..tvm.types import Expr, PrimExpr
from .between_reshapes import told_in_axes
from .grouped_queries import ALONG_ROWS, BY_ELEMENT, PRODUCTS, VIEWS, axes_of

MOST = 64  # ops between two views; those of attention are a dozen at most
MOST_SCALES = 4  # ops by element behind a product


def views_of_batches(made: Made, to: Editor) -> Expr | None:
    """A view of a batch that undoes one before some ops, without both."""
    if made.kind not in VIEWS:
        return None
    after, between = to.shape(made.call), to.shape(made.args[0])
    if not is_known(after) or not is_known(between) or min(len(after), len(between)) < 3:
        return None
    inner = to.made(made.args[0])
    is_view = are_same(after[-2:], between[-2:]) and not are_same(after, between)
    if inner is None or inner.kind in VIEWS or not is_view:
        return None
    return _Undone(to, tuple(after), tuple(between)).of(made.args[0])


@dataclass(frozen=True)
class _Undone:
    """Values of the shape `between` in the shape `after`, by the ops that made them."""

    to: Editor
    after: Sequence[PrimExpr]
    between: Sequence[PrimExpr]
    _done: dict[Expr, Expr | None] = field(default_factory=dict)

    def of(self, x: Expr) -> Expr | None:
        """A value that was computed of a view; None of others."""
        if x not in self._done:
            made = self.to.made(x) if len(self._done) < MOST else None
            self._done[x] = None
            self._done[x] = None if made is None else self._made(made)
        return self._done[x]

    def _made(self, made: Made) -> Expr | None:
        to = self.to
        if made.kind in VIEWS:
            before = to.shape(made.args[0])
            is_undone = before is not None and are_same(before, self.after)
            return made.args[0] if is_undone and is_of_product(made.args[0], to) else None
        if made.kind in ALONG_ROWS:
            found = self.of(made.args[0]) if axes_of(made) in _last(self.between) else None
            axis = -1 if made.kind == "softmax" else [-1]
            return None if found is None else to.again(made, [found], axis=axis)
        is_by_element = made.kind in BY_ELEMENT or is_elementwise_kind(made.kind)
        return self._by_element(made) if is_by_element and "axis" not in made.attrs else None

    def _by_element(self, made: Made) -> Expr | None:
        """Of an op by element: each side of rows as a value, a mask beside it in other axes."""
        whole = [self._has_rows(arg) for arg in made.args]
        found = [self.of(arg) if has else None for arg, has in zip(made.args, whole, strict=True)]
        if all(each is None for each in found):
            return None
        args = [
            self._beside(arg) if each is None else each
            for arg, each in zip(made.args, found, strict=True)
        ]
        return None if None in args else self.to.again(made, args)

    def _has_rows(self, x: Expr) -> bool:
        """Whether it has all rows; those of one element, such as a largest score, too."""
        shape = self.to.shape(x)
        return shape is not None and are_same(shape[:-1], self.between[:-1])

    def _beside(self, x: Expr) -> Expr | None:
        """What is broadcast along the batch, in its new axes; a mask of each sentence for all heads
        is repeated for them.
        """
        to, shape = self.to, self.to.shape(x)
        if not to.is_tensor(x) or size_one(to, x):
            return x
        if not is_known(shape):
            return None
        array, sizes = to.array(x), (*self.between, *self.after)
        if array is not None and all(isinstance(extent, int) and extent for extent in sizes):
            told = told_in_axes(array, self.between, self.after, to)
            if told is not None:
                return told
        *lead, rows, columns = [1] * (len(self.between) - len(shape)) + list(shape)
        batch = list(self.between[:-2])
        if all(extent == 1 for extent in lead):
            return to.emit("reshape", x, shape=(*[1] * (len(self.after) - 2), rows, columns))
        if not are_same(lead, batch):
            x = to.emit("broadcast_to", x, shape=(*batch, rows, columns))
        return to.emit("reshape", x, shape=(*self.after[:-2], rows, columns))


def is_of_product(x: Expr, to: Editor) -> bool:
    """Whether it is a product of matrices, perhaps scaled and with something added."""
    made, steps = to.made(x), 0
    while made is not None and is_elementwise_kind(made.kind) and steps < MOST_SCALES:
        made, steps = to.made(made.args[0]), steps + 1
    return made is not None and made.kind in PRODUCTS


def _last(shape: Sequence[PrimExpr]) -> tuple[tuple[int, ...], ...]:
    return (-1,), (len(shape) - 1,)
