"""The stages of a product of rows with a packed weight.

Rows come in tiles, columns in blocks of a cache line, both whole: what lies after the last row is
a copy of it, and after the last column a product with the zeros of the packed weight. Only the
result has the real shape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ....codegen.elementwise import staged
from ....codegen.info.op_record import TensorInfo
from ....codegen.info.ops import Ops
from ....ops import mathfn
from ....tvm import dtype_of, te, tir
from ....tvm.own_ops import dot
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, reduce_axes
from ...steps.tiles import BLOCK
from .forms import ProductPlan
from .halves import rounded_words
from .layout import Rows
from .rowwise import Rowwise


@dataclass(frozen=True)
class Product:
    """[outer, tile, block, row, lane]: `last` sums over the last piece of k, `before` has the sums
    of those before it, of `parts` [outer, tile, piece, block, row, lane]; `total` are both. With
    one piece there is only `last`, or partial sums of it, which are the `parts` then.
    """

    last: Tensor
    before: Tensor | None = None
    parts: Tensor | None = None
    total: Tensor | None = None

    @property
    def sums(self) -> Tensor:
        """Over all of k."""
        return self.last if self.total is None else self.total


@dataclass(frozen=True)
class Dense:
    """A dense layer: its product, what follows on its tiles, the real elements of them, and what
    is computed of the rows first.
    """

    product: Product
    outputs: Tensor
    result: Tensor
    normal: Rowwise | None = None


ACTIVATIONS = {
    "gelu": mathfn.gelu,
    "gelu_tanh": mathfn.gelu_tanh,
    "relu": lambda x: tir.Max(tir.const(0, dtype_of(x)), x),
    "silu": mathfn.silu,
}


def activation(ops: Ops) -> Callable[[PrimExpr], PrimExpr]:
    """The function of the op that is an activation, if there is one."""
    return next((ACTIVATIONS[v.kind] for v in ops if v.kind in ACTIVATIONS), lambda x: x)


def in_tiles(x: Tensor, rows: Rows) -> Callable[..., PrimExpr]:
    """Reads x [lead, k] at (outer, tile, row, k)."""
    return lambda *i: x(*rows.of(i[:-1]), i[-1])


def factors(x: Tensor, plan: ProductPlan) -> Tensor:
    """The rows [lead, k] as a product reads them: as they are, or in words. Ops that joined the
    kernel in front of them are computed once.
    """
    if not plan.products:
        return staged(x)
    return rounded_words(x, x.shape, "x")


def product(
    read: Callable[..., PrimExpr],
    weight: Tensor,
    dtype: str,
    plan: ProductPlan,
    name: str = "products",
    times: Callable[[PrimExpr, PrimExpr], PrimExpr] = operator.mul,
) -> Product:
    """Sums over k of read(outer, tile, row, k) * weight(block, k, lane), or of other products."""
    rows, size = plan.rows, plan.size
    if plan.products:
        dtype, times = "int32", partial(dot, plan.products)
    (k,) = reduce_axes(k=size // plan.partial)

    def part(
        at: Sequence[PrimExpr], step: PrimExpr, block: PrimExpr, row: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        left, right = read(*at, row, step), weight(block, step, lane)
        return te.sum(times(left.astype(dtype), right.astype(dtype)), axis=k)

    tile = (plan.blocks, rows.height, BLOCK)
    if plan.partial > 1:
        parts = te.compute(
            (*rows.tiles, plan.partial, *tile),
            lambda *i: part(i[:-4], k * plan.partial + i[-4], *i[-3:]),
            name=f"{name}_parts",
        )
        return Product(_sum_of(parts, len(rows.tiles), name), parts=parts)
    last = te.compute(
        (*rows.tiles, *tile),
        lambda *i: part(i[:-3], (plan.pieces - 1) * size + k, *i[-3:]),
        name=name if plan.pieces == 1 else f"{name}_last",
    )
    if plan.pieces == 1:
        return Product(last)
    parts = te.compute(
        (*rows.tiles, plan.pieces - 1, *tile),
        lambda *i: part(i[:-4], i[-4] * size + k, *i[-3:]),
        name=f"{name}_parts",
    )
    before = _sum_of(parts, len(rows.tiles), f"{name}_before")
    total = te.compute(before.shape, lambda *i: before(*i) + last(*i), name=name)
    return Product(last, before, parts, total)


def _sum_of(parts: Tensor, axis: int, name: str) -> Tensor:
    """The sum over one axis; a copy where there is but one part."""
    shape = list(extents(parts))
    pieces = shape.pop(axis)
    if pieces == 1:
        return te.compute(shape, lambda *i: parts(*i[:axis], 0, *i[axis:]), name=name)
    (piece,) = reduce_axes(piece=pieces)
    return te.compute(
        shape, lambda *i: te.sum(parts(*i[:axis], piece, *i[axis:]), axis=piece), name=name
    )


def unit_of(tiles: Tensor, units: int) -> Callable[..., PrimExpr]:
    """The unit of an element of a product's tiles; the last one for those that are none."""
    is_padded = int(tiles.shape[-3]) * BLOCK > units

    def unit(*i: PrimExpr) -> PrimExpr:
        at = i[-3] * BLOCK + i[-1]
        return tir.Min(at, units - 1) if is_padded else at

    return unit


def epilogue(
    tiles: Tensor,
    bias: Tensor | None,
    out: TensorInfo,
    activation: Callable[[PrimExpr], PrimExpr] = lambda value: value,
    name: str = "outputs",
) -> Tensor:
    """Bias and activation on the tiles of a product, for a result of this shape and dtype."""
    unit = unit_of(tiles, out.shape[-1])

    def element(*i: PrimExpr) -> PrimExpr:
        value = tiles(*i).astype(out.dtype)
        return activation(value if bias is None else value + bias(unit(*i)))

    return te.compute(tiles.shape, element, name=name)


def result(rows: Rows, tiles: Tensor, units: int, residual: Tensor | None = None) -> Tensor:
    """The real elements: [lead, units], with what is added to them."""

    def element(*i: PrimExpr) -> PrimExpr:
        *at, row = rows.where(i[:-1])
        value = tiles(*at, tir.floordiv(i[-1], BLOCK), row, tir.floormod(i[-1], BLOCK))
        return value if residual is None else value + residual(*i)

    return te.compute((*rows.lead, units), element, name="result")
