"""NonMaxSuppression by a kernel of our own, whose number of selected boxes is data: what is made of
them has this many.

TVM 0.27's op says of its result that all boxes were selected, and slices it to those that were when
it makes a kernel of it, after what asked for its size. Its kernel takes boxes of scores below 0 for
dropped ones, and where the limits are data it writes beyond its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from ....ops.recurrent_nest import for_loop
from ....tvm import dtype_of, te, tir
from ....tvm.alignment import any_alignment
from ....tvm.rewrite import sequence
from ....tvm.types import Attrs, BlockBuilder, Buffer, Expr, PrimExpr, PrimFunc, Stmt
from .shapes import Reading, extents_of, symbols


def _suppressed(at: Reading, inputs: Sequence[Expr | None], attributes: Attrs) -> Expr:
    boxes, scores, *limits = (inputs[n] if n < len(inputs) else None for n in range(5))
    builder, emit, (known,) = at.builder, at.builder.emit, at.numbers(2) or [None]
    most, overlap, least = (
        None if x is None else _one(builder, x, dtype)
        for x, dtype in zip(limits, ("int64", "float32", "float32"), strict=True)
    )
    given = [
        boxes, scores, relax.const([0], "int64") if most is None else most,
        relax.const([0], "float32") if overlap is None else overlap,
        *([] if least is None else [least]),
    ]  # fmt: skip
    is_centred = bool(attributes.get("center_point_box", 0))
    batch, classes, count = extents_of(scores)
    each = count if known is None else at.algebra.least(count, max(int(known), 0))
    sizes = [at.algebra.product(e) for e in ([batch, classes, each], [batch, classes])]
    shapes = [[sizes[0], 3], [1], [sizes[1], count], [sizes[1], _NUMBERS]]
    kernel = builder.add_func(_kernel(given, known, is_centred), "non_max_suppression")
    found = emit(relax.call_tir(kernel, given, [relax.TensorType(s, "int64") for s in shapes]))
    places, total = (emit(relax.TupleGetItem(found, n)) for n in range(2))
    (selected,) = symbols(builder, total, "selected").values
    return relax.op.strided_slice(places, [0], [0], [selected], [1], assume_inbound=True)


def _one(builder: BlockBuilder, x: Expr, dtype: str) -> Expr:
    x = builder.emit(relax.op.reshape(x, relax.ShapeExpr([1])))
    return x if x.ty.dtype == dtype else builder.emit(relax.op.astype(x, dtype))


def _kernel(given: Sequence[Expr], most: int | None, is_centred: bool) -> PrimFunc:
    """Of the results that `_Selection` writes."""
    batch, classes, count = (
        e if isinstance(e, int) else tir.Var(name, "int64")
        for e, name in zip(extents_of(given[1]), ("batch", "classes", "boxes"), strict=True)
    )
    sources: list[Any] = [
        te.placeholder((batch, count, 4), "float32", "boxes"),
        te.placeholder((batch, classes, count), "float32", "scores"),
        *(te.placeholder((1,), str(x.ty.dtype), f"limit_{n}") for n, x in enumerate(given[2:])),
    ]
    each = count if most is None else tir.min(count, tir.const(max(most, 0), "int64"))
    shapes = [(batch * classes * each, 3), (1,), (batch * classes, count)]
    found = te.extern(
        [*shapes, (batch * classes, _NUMBERS)], sources,
        lambda ins, outs: _Selection(ins, outs, is_centred).written(),
        name="selected", dtype=["int64"] * 4,
    )  # fmt: skip
    func = te.create_prim_func([*sources, *found])
    made = any_alignment(func).without_attr("global_symbol")
    return made.with_attr({"tirx.is_scheduled": True})


# Of a class: how many boxes are left and selected, which is the best of those left (-1: none),
# which one was selected last, and how many were left before.
_LEFT, _SELECTED, _BEST, _LAST, _BEFORE = range(5)
_NUMBERS = 5


class _Selection:
    """`places` are rows of batch, class and box, of which the first `total` count. In a row of
    `left`, of a class, are the boxes that are left, and from its end on those that were selected.
    """

    def __init__(self, ins: Sequence[Buffer], outs: Sequence[Buffer], is_centred: bool) -> None:
        self.boxes, self.scores, self.most, self.overlap, *self.least = ins
        self.places, self.total, self.left, self.numbers = outs
        self.is_centred = is_centred
        _, self.classes, self.count = (_wide(e) for e in self.scores.shape)
        self.rows = _wide(self.numbers.shape[0])

    def written(self) -> Stmt:
        """Each class by itself, and then their rows one after another."""
        row = tir.Var("row", "int64")
        zero = tir.const(0, "int64")
        found = tir.For(row, zero, self.rows, tir.ForKind.PARALLEL, self._of_class(row))
        start = tir.BufferStore(self.total, zero, [0])
        return sequence([found, start, for_loop(self.rows, "row", self._collected)])

    def _of_class(self, row: PrimExpr) -> Stmt:
        numbers = ((_LEFT, 0), (_SELECTED, 0), (_BEST, -1))
        most = tir.min(tir.BufferLoad(self.most, [0]), self.count)

        def begun(box: PrimExpr) -> Stmt:
            if not self.least:
                return self._kept(row, box)
            is_enough = self._score(row, box) > tir.BufferLoad(self.least[0], [0])
            return tir.IfThenElse(is_enough, self._kept(row, box), None)

        return sequence([
            *(self._put(row, n, tir.const(value, "int64")) for n, value in numbers),
            for_loop(self.count, "box", begun),
            for_loop(most, "step", lambda _: self._step(row)),
        ])  # fmt: skip

    def _step(self, row: PrimExpr) -> Stmt:
        """The best box is selected; it and those that overlap it are left no more."""
        last = self._number(row, _LAST)

        def looked_at(k: PrimExpr) -> Stmt:
            box = tir.BufferLoad(self.left, [row, k])
            is_left = tir.all(box != last, tir.Not(self._overlaps(row, box, last)))
            return tir.IfThenElse(is_left, self._kept(row, box), None)

        end = self.count - 1 - self._number(row, _SELECTED)
        step = [
            self._put(row, _LAST, self._number(row, _BEST)),
            self._put(row, _BEFORE, self._number(row, _LEFT)),
            self._put(row, _LEFT, tir.const(0, "int64")),
            self._put(row, _BEST, tir.const(-1, "int64")),
            for_loop(self._number(row, _BEFORE), "k", looked_at),
            tir.BufferStore(self.left, last, [row, end]),
            self._put(row, _SELECTED, self._number(row, _SELECTED) + 1),
        ]
        return tir.IfThenElse(self._number(row, _BEST) >= 0, sequence(step), None)

    def _kept(self, row: PrimExpr, box: PrimExpr) -> Stmt:
        """One more box is left; of equal ones the first is the best."""
        best, left = self._number(row, _BEST), self._number(row, _LEFT)
        score = self._score(row, tir.max(best, tir.const(0, "int64")))
        is_better = tir.any(best < 0, self._score(row, box) > score)
        found = tir.Var("kept", "int64")
        body = sequence([
            tir.IfThenElse(is_better, self._put(row, _BEST, found), None),
            tir.BufferStore(self.left, found, [row, left]),
            self._put(row, _LEFT, left + 1),
        ])  # fmt: skip
        return _bound(found, box, body)

    def _overlaps(self, row: PrimExpr, box: PrimExpr, other: PrimExpr) -> PrimExpr:
        """By more than the threshold; a box without an area overlaps none."""
        batch = tir.floordiv(row, self.classes)
        pairs = [self._ends(batch, box), self._ends(batch, other)]
        both, areas = tir.const(1.0, "float32"), [tir.const(1.0, "float32")] * 2
        for (low, high), (low_2, high_2) in zip(*pairs, strict=True):
            both *= tir.max(tir.min(high, high_2) - tir.max(low, low_2), tir.const(0.0, "float32"))
            areas = [areas[0] * (high - low), areas[1] * (high_2 - low_2)]
        is_one = tir.all(both > 0, areas[0] > 0, areas[1] > 0)
        share = both / (areas[0] + areas[1] - both)
        return tir.all(is_one, share > tir.BufferLoad(self.overlap, [0]))

    def _ends(self, batch: PrimExpr, box: PrimExpr) -> list[tuple[PrimExpr, PrimExpr]]:
        """Where a box begins and ends, along both axes."""
        a, b, c, d = (tir.BufferLoad(self.boxes, [batch, box, n]) for n in range(4))
        if not self.is_centred:
            return [(tir.min(p, q), tir.max(p, q)) for p, q in ((a, c), (b, d))]
        half = tir.const(0.5, "float32")
        return [(middle - size * half, middle + size * half) for middle, size in ((a, c), (b, d))]

    def _collected(self, row: PrimExpr) -> Stmt:
        total = tir.BufferLoad(self.total, [0])

        def written(n: PrimExpr) -> Stmt:
            box = tir.BufferLoad(self.left, [row, self.count - 1 - n])
            place = [tir.floordiv(row, self.classes), tir.floormod(row, self.classes), box]
            return sequence([
                tir.BufferStore(self.places, value, [total + n, axis])
                for axis, value in enumerate(place)
            ])  # fmt: skip

        selected = self._number(row, _SELECTED)
        return sequence([
            for_loop(selected, "n", written), tir.BufferStore(self.total, total + selected, [0])
        ])  # fmt: skip

    def _score(self, row: PrimExpr, box: PrimExpr) -> PrimExpr:
        at = [tir.floordiv(row, self.classes), tir.floormod(row, self.classes), box]
        return tir.BufferLoad(self.scores, at)

    def _number(self, row: PrimExpr, n: int) -> PrimExpr:
        return tir.BufferLoad(self.numbers, [row, n])

    def _put(self, row: PrimExpr, n: int, value: PrimExpr) -> Stmt:
        return tir.BufferStore(self.numbers, value, [row, n])


def _wide(extent: PrimExpr) -> PrimExpr:
    if isinstance(extent, (int, tir.IntImm)):
        return tir.const(int(extent), "int64")
    return extent if dtype_of(extent) == "int64" else tir.Cast("int64", extent)


def _bound(var: PrimExpr, value: PrimExpr, body: Stmt) -> Stmt:
    """A statement in which a variable stands for a value, which is computed once."""
    return tir.For(var, value, tir.const(1, "int64"), tir.ForKind.SERIAL, body)


CONVERTERS = {"NonMaxSuppression": _suppressed}
