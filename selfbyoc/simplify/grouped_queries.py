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
from dataclasses import dataclass, field

from ..ir.rewriting import Editor, Made, are_same, is_known, size_one
from ..ops.vocabulary import is_elementwise_kind
from ..tvm.types import Expr, PrimExpr

PRODUCTS = ("matmul", "batch_matmul")
VIEWS = ("reshape", "expand_dims", "squeeze")
ALONG_ROWS = ("softmax", "max", "min", "sum", "mean")
BY_ELEMENT = (
    "where", "full_like", "zeros_like", "half_factor", "cast", "equal", "not_equal", "logical_not",
    "logical_and", "isnan",
)  # fmt: skip

Shape = Sequence[PrimExpr]


def grouped_queries(made: Made, to: Editor) -> Expr | None:
    """A product whose second side is repeated along its batch, without the repeating."""
    if made.kind not in PRODUCTS or made.attrs.get("transpose_a"):
        return None
    queries, repeated = made.args[:2]
    shape = to.shape(queries)
    if not is_known(shape) or len(shape) < 3:
        return None
    found = _once(repeated, to)
    if found is None or len(to.shape(repeated) or ()) != len(shape):
        return None
    keys, times = found
    groups = _Groups(to, times)
    rows = groups.of(queries)
    wanted = groups.shape(queries)
    if wanted is None:
        return None
    rows = _viewed(queries if rows is None else rows, wanted, to)
    product = to.again(made, [rows, keys, *made.args[2:]])
    return to.emit("reshape", product, shape=tuple(to.shape(made.call) or ()))


def _once(x: Expr, to: Editor) -> tuple[Expr, int] | None:
    """What is repeated, each matrix of its batch so many times in turn, and how often."""
    made, shape = to.made(x), to.shape(x)
    if made is None or not is_known(shape) or len(shape) < 3:
        return None
    if made.kind in VIEWS:
        return _repeated(made, shape, to) or _of_view(made, shape, to)
    axes = made.attrs.get("axes") if made.kind == "transpose" else None
    is_inside = axes is not None and tuple(axes[:-2]) == tuple(range(len(shape) - 2))
    by_number = made.kind in ("multiply", "divide") and size_one(to, made.args[1])
    if not (is_inside or by_number or made.kind in ("cast", "half_factor")):
        return None
    found = _once(made.args[0], to)
    return None if found is None else (to.again(made, [found[0], *made.args[1:]]), found[1])


def _repeated(made: Made, shape: Shape, to: Editor) -> tuple[Expr, int] | None:
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
    return _viewed(spread.args[0], once, to), times


def _of_view(made: Made, shape: Shape, to: Editor) -> tuple[Expr, int] | None:
    """Of a view that leaves the matrices as they are."""
    before = to.shape(made.args[0])
    if before is None or not are_same(before[-2:], shape[-2:]):
        return None
    found = _once(made.args[0], to)
    if found is None or not _is_multiple(shape[-3], found[1]):
        return None
    once = (*shape[:-3], shape[-3] // found[1], *shape[-2:])
    return _viewed(found[0], once, to), found[1]


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
            is_last = _axes(made) in ((-1,), (len(shape) - 1,))
            return to.again(made, [found]) if found is not None and is_last else None
        if not (made.kind in BY_ELEMENT or is_elementwise_kind(made.kind)):
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
        """What an op by element reads beside: of a mask for all heads, each row as often as there
        are queries in a group.
        """
        to, shape = self.to, self.to.shape(arg)
        if not to.is_tensor(arg) or size_one(to, arg):
            return arg
        if not is_known(shape):
            return None
        *lead, rows, columns = [*[1] * (len(whole) - len(shape)), *shape]
        if any(extent != 1 for extent in lead):
            return None
        ones = [1] * (ndim - 3)
        if rows == 1:
            return _viewed(arg, (*ones, 1, 1, columns), to)
        spread = to.emit("reshape", arg, shape=(*ones, 1, 1, rows, columns))
        spread = to.emit("broadcast_to", spread, shape=(*ones, 1, self.times, rows, columns))
        return to.emit("reshape", spread, shape=(*ones, 1, rows * self.times, columns))


def _axes(made: Made) -> tuple[int, ...]:
    """The axes that an op goes along; none, where its result loses them."""
    if not made.attrs.get("keepdims", True):
        return ()
    axes = made.attrs.get("axis", made.attrs.get("axes", ()))
    return tuple(axes) if isinstance(axes, (list, tuple)) else (axes,)
