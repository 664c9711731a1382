"""Queries that share keys and values are rows of one product, and nothing is repeated for them.

    reshape(broadcast_to(k, (2, 7, m, d)), (14, m, d))      keys of 2 heads, for 14 heads of queries
    q @ k'.T  ->  reshape(reshape(q, (2, 7 * n, d)) @ k.T, (14, n, m))

Decoders of language models have fewer heads of keys than of queries, and repeat them (Llama, Qwen,
Mistral). What stands between the scores' product and that with the values goes the same way, a
repeated mask with it, so that all of it is one attention; a head's keys are read once for all of
the queries that share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir.rewriting import Editor, Made, are_same, is_known, size_one
from ..ops.vocabulary import is_elementwise_kind
from ..tvm import GENERATION
from ..tvm.types import Expr, PrimExpr

PRODUCTS = ("matmul", "batch_matmul")
VIEWS = ("reshape", "expand_dims", "squeeze")
ALONG_ROWS = ("softmax", "max", "min", "sum", "mean")
BY_ELEMENT = (
    "where", "full_like", "zeros_like", "half_factor", "cast", "equal", "not_equal", "logical_not",
    "logical_and", "isnan",
)  # fmt: skip

Shape = Sequence[PrimExpr]


@dataclass(frozen=True)
class _Once:
    """What is repeated, each matrix of its batch so many times in turn; and the numbers that all of
    it is multiplied or divided by, with the ops.
    """

    x: Expr
    times: int
    factors: tuple[tuple[str, Expr], ...] = ()


def grouped_queries(made: Made, to: Editor) -> Expr | None:
    """A product whose second side is repeated along its batch, without the repeating."""
    if made.kind not in PRODUCTS or made.attrs.get("transpose_a"):
        return None
    queries, repeated = made.args[:2]
    shape = to.shape(queries)
    if not is_known(shape) or len(shape) < 3 or len(to.shape(repeated) or ()) != len(shape):
        return None
    found = _once(repeated, to)
    groups = None if found is None else _Groups(to, found.times)
    wanted = None if groups is None else groups.shape(queries)
    if found is None or groups is None or wanted is None:
        return None
    rows, keys = groups.of(queries), _with_ones(found.x, to)
    wanted = [*[1] * (len(to.shape(keys) or ()) - len(wanted)), *wanted]
    rows = _viewed(queries if rows is None else rows, wanted, to)
    for kind, number in found.factors:
        rows = to.emit(kind, rows, number)
    product = to.again(made, [rows, keys, *made.args[2:]])
    return to.emit("reshape", product, shape=tuple(to.shape(made.call) or ()))


def _with_ones(x: Expr, to: Editor) -> Expr:
    """A value before a view took its leading axes of 1, where products may have more than three."""
    made, shape = to.made(x), to.shape(x)
    before = None if made is None else to.shape(made.args[0])
    if GENERATION == "relay" or made is None or made.kind not in VIEWS or before is None:
        return x
    ones = len(before) - len(shape or ())
    is_same = ones > 0 and are_same(before, [*[1] * ones, *(shape or ())])
    return made.args[0] if is_same else x


def _once(x: Expr, to: Editor) -> _Once | None:
    made, shape = to.made(x), to.shape(x)
    if made is None or not is_known(shape) or len(shape) < 3:
        return None
    if made.kind in VIEWS:
        return _repeated(made, shape, to) or _of_view(made, shape, to)
    axes: Any = made.attrs.get("axes") if made.kind == "transpose" else None
    is_inside = axes is not None and tuple(axes[:-2]) == tuple(range(len(shape) - 2))
    is_scaled = made.kind in ("multiply", "divide") and to.shape(made.args[1]) in ([], [1])
    if not (is_inside or is_scaled or made.kind in ("cast", "half_factor")):
        return None
    found = _once(made.args[0], to)
    if found is None:
        return None
    if found.factors and not is_inside and not is_scaled:
        return None  # rounded after it was scaled, which queries are not
    if is_scaled:
        return replace(found, factors=(*found.factors, (made.kind, made.args[1])))
    if is_inside:
        return replace(found, x=_transposed(found.x, axes, to))
    return replace(found, x=to.again(made, [found.x, *made.args[1:]]))


def _transposed(x: Expr, axes: Sequence[int], to: Editor) -> Expr:
    """A transpose, and one that it is of, as one; a view that takes axes of 1 comes after it."""
    whole = _with_ones(x, to)
    ones = len(to.shape(whole) or ()) - len(axes)
    axes = [*range(ones), *(axis + ones for axis in axes)]
    made = to.made(whole)
    if made is not None and made.kind == "transpose" and made.attrs.get("axes"):
        before: Any = made.attrs["axes"]
        whole, axes = made.args[0], [before[axis] for axis in axes]
    found = to.emit("transpose", whole, axes=tuple(axes))
    return _viewed(found, (to.shape(found) or [])[ones:], to) if ones else found


def _repeated(made: Made, shape: Shape, to: Editor) -> _Once | None:
    """Of a reshape that joins an axis with one that is broadcast after it."""
    spread = to.made(made.args[0])
    if spread is None or spread.kind != "broadcast_to":
        return None
    wide, narrow = to.shape(made.args[0]), to.shape(spread.args[0])
    if wide is None or narrow is None or len(narrow) != len(wide) or len(wide) < 4:
        return None
    *lead, times, rows, columns = wide
    if not (isinstance(times, int) and times > 1 and _is_multiple(shape[-3], times)):
        return None
    if not are_same(narrow, (*lead, 1, rows, columns)) or not are_same(shape[-2:], wide[-2:]):
        return None
    once = (*shape[:-3], shape[-3] // times, *shape[-2:])
    return _Once(_viewed(spread.args[0], once, to), times)


def _of_view(made: Made, shape: Shape, to: Editor) -> _Once | None:
    """Of a view that leaves the matrices as they are."""
    before = to.shape(made.args[0])
    if before is None or not are_same(before[-2:], shape[-2:]):
        return None
    found = _once(made.args[0], to)
    if found is None or not _is_multiple(shape[-3], found.times):
        return None
    once = (*shape[:-3], shape[-3] // found.times, *shape[-2:])
    return replace(found, x=_viewed(found.x, once, to))


def _viewed(x: Expr, shape: Shape, to: Editor) -> Expr:
    """A view in this shape, without the views that it is of."""
    made = to.made(x)
    while made is not None and made.kind in VIEWS:
        x = made.args[0]
        made = to.made(x)
    has = to.shape(x)
    return x if has and are_same(has, shape) else to.emit("reshape", x, shape=tuple(shape))


def _is_multiple(extent: PrimExpr, of: int) -> bool:
    return isinstance(extent, int) and extent % of == 0


@dataclass
class _Groups:
    """Values of [..., heads, rows, columns] as [..., heads / times, times * rows, columns]."""

    to: Editor
    times: int
    _done: dict[Expr, Expr | None] = field(default_factory=dict)

    def shape(self, x: Expr) -> list[PrimExpr] | None:
        """That of a value in groups; None where its heads do not come in groups."""
        shape = self.to.shape(x)
        if not is_known(shape) or len(shape) < 3 or not _is_multiple(shape[-3], self.times):
            return None
        *lead, heads, rows, columns = shape
        return [*lead, heads // self.times, rows * self.times, columns]

    def of(self, x: Expr) -> Expr | None:
        """A value in groups, computed of what a product has made in groups, with as many axes; None
        of others.
        """
        if x not in self._done:
            made, shape = self.to.made(x), self.shape(x)
            self._done[x] = None if made is None or shape is None else self._made(x, made, shape)
        return self._done[x]

    def _made(self, x: Expr, made: Made, shape: Shape) -> Expr | None:
        to = self.to
        if made.kind in VIEWS:
            inner = made.args[0]
            before = to.shape(inner)
            if before is not None and len(before) > 2 and are_same(before[-2:], shape[-2:]):
                return inner  # a product in groups, taken out of them
            return self.of(inner)
        if made.kind in ALONG_ROWS:
            found = self.of(made.args[0])
            if found is None or axes_of(made) not in ((-1,), (len(shape) - 1,)):
                return None
            # It may have fewer axes now, of which this is the last all the same.
            return to.again(made, [found], axis=-1 if made.kind == "softmax" else [-1])
        is_by_element = made.kind in BY_ELEMENT or is_elementwise_kind(made.kind)
        if not is_by_element or "axis" in made.attrs:
            return None
        whole = to.shape(x) or []
        same = [self.of(arg) if self._is_whole(arg, whole) else None for arg in made.args]
        ndims = {len(to.shape(each) or ()) for each in same if each is not None}
        if len(ndims) != 1:
            return None
        args = [
            self._beside(arg, whole, *ndims) if found is None else found
            for arg, found in zip(made.args, same, strict=True)
        ]
        return None if any(arg is None for arg in args) else to.again(made, args)

    def _is_whole(self, x: Expr, whole: Shape) -> bool:
        """Whether it has all of the rows of an op's result."""
        shape = self.to.shape(x)
        return shape is not None and are_same(shape[:-1], whole[:-1])

    def _beside(self, arg: Expr, whole: Shape, ndim: int) -> Expr | None:
        """What an op by element reads beside: a mask of each head in groups, of a mask for all
        heads each row as often as there are queries in a group.
        """
        to, shape = self.to, self.to.shape(arg)
        if not to.is_tensor(arg) or size_one(to, arg):
            return arg
        if not is_known(shape):
            return None
        full: list[PrimExpr] = [*[1] * (len(whole) - len(shape)), *shape]
        *lead, rows, columns = full
        groups = self.shape(arg) if are_same(full[-3:-1], whole[-3:-1]) else None
        if groups is not None and are_same(full[:-ndim], [1] * len(full[:-ndim])):
            return _viewed(arg, [*[1] * (ndim - len(groups)), *groups][-ndim:], to)
        if lead[-1] != 1 or any(extent != 1 for extent in full[:-ndim]):
            return None
        outer = [*[1] * (ndim - len(full)), *full][-ndim:-3]  # a mask of each sentence
        once = _viewed(arg, (*outer, 1, rows, columns), to)
        times = (*[1] * (ndim - 2), self.times, 1)
        return once if rows == 1 else to.emit("tile", once, repeats=times)


def axes_of(made: Made) -> tuple[int, ...]:
    """The axes that an op goes along; none, where its result loses them."""
    if not made.attrs.get("keepdims", True):
        return ()
    axes: Any = made.attrs.get("axis", made.attrs.get("axes", ()))
    return tuple(axes) if isinstance(axes, (list, tuple)) else (axes,)
