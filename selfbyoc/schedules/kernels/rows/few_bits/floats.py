"""The sums of rows of floats by levels. Few rows: those of a group are of the levels as they are,
and what its scale and zero point make of them is added up,

    sum over groups of scale * (sum of x * level - zero * sum of x).

Many rows: a piece of a panel becomes floats once, which all tiles of rows multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .....ops.kind import broadcast
from .....tvm import te, tir
from .....tvm.types import Loop, PrimExpr, Schedule, Tensor
from ....steps.blocks import Facts
from ....steps.loops import Finish, vectorize
from ....steps.tensors import reduce_axes
from ....steps.tiles import BLOCK
from ..compute import in_tiles
from ..product import in_registers, pieces_around
from ..tiles import Loops
from .plan import FewBitsPlan
from .words import fraction, in_whole_groups


@dataclass(frozen=True)
class Grouped:
    """`parts` [outer, tile, piece, partial sum, block, row, lane] are those of a piece, `sums` of
    all.
    """

    parts: Tensor
    sums: Tensor
    panel: Tensor | None = None  # [block, k, lane] of floats
    inputs: Tensor | None = None  # [outer, tile, piece, row]: sums of a row's elements


def sums_by_floats(
    x: Tensor, levels: Tensor, scale: Tensor, zero: Tensor, plan: FewBitsPlan
) -> Grouped:
    """The sums of rows [lead, k] by a packed weight."""

    def level(b: PrimExpr, k: PrimExpr, lane: PrimExpr) -> PrimExpr:
        word = levels(b, tir.floordiv(k, plan.word), lane)
        return fraction(word, tir.floormod(k, plan.word), plan.bits)

    made = _by_panels if plan.by_panels else _by_groups
    read = in_tiles(in_whole_groups(x, plan.product.depth), plan.product.rows)
    return made(read, level, scale, zero, plan)


def _by_panels(
    read: Callable[..., PrimExpr], level: Callable[..., PrimExpr], scale: Tensor, zero: Tensor,
    plan: FewBitsPlan,
) -> Grouped:  # fmt: skip
    def element(b: PrimExpr, k: PrimExpr, lane: PrimExpr) -> PrimExpr:
        at = b, tir.floordiv(k, plan.group), lane
        return (level(b, k, lane) - broadcast(zero, at)) * broadcast(scale, at)

    shape = (plan.product.blocks, plan.product.depth, BLOCK)
    panel = te.compute(shape, element, name="panel")
    parts = _parts(read, panel, plan)
    return Grouped(parts, _summed(parts, plan, lambda part, *_: part), panel)


def _by_groups(
    read: Callable[..., PrimExpr], level: Callable[..., PrimExpr], scale: Tensor, zero: Tensor,
    plan: FewBitsPlan,
) -> Grouped:  # fmt: skip
    rows, size = plan.product.rows, plan.group
    (k,) = reduce_axes(k=size)

    def element(*i: PrimExpr) -> PrimExpr:
        *at, piece, row = i
        return te.sum(read(*at, row, piece * size + k), axis=k)

    shape = (*rows.tiles, plan.product.pieces, rows.height)
    inputs = te.compute(shape, element, name="inputs_of_groups")

    def scaled(
        part: PrimExpr,
        at: Sequence[PrimExpr],
        piece: PrimExpr,
        b: PrimExpr,
        row: PrimExpr,
        lane: PrimExpr,
    ) -> PrimExpr:
        factor, point = (broadcast(a, (b, piece, lane)) for a in (scale, zero))
        return factor * (part - point * inputs(*at, piece, row))

    parts = _parts(read, level, plan)
    return Grouped(parts, _summed(parts, plan, scaled), inputs=inputs)


def _parts(
    read: Callable[..., PrimExpr], weight: Callable[..., PrimExpr], plan: FewBitsPlan
) -> Tensor:
    product = plan.product
    (k,) = reduce_axes(k=product.size // product.partial)

    def element(*i: PrimExpr) -> PrimExpr:
        *at, piece, n, block, row, lane = i
        place = piece * product.size + k * product.partial + n
        return te.sum(read(*at, row, place) * weight(block, place, lane), axis=k)

    tile = (product.pieces, product.partial, product.blocks, product.rows.height, BLOCK)
    return te.compute((*product.rows.tiles, *tile), element, name="products_parts")


def _summed(parts: Tensor, plan: FewBitsPlan, made: Callable[..., PrimExpr]) -> Tensor:
    """Over the pieces, of what is made of each."""
    product = plan.product
    shape = (*product.rows.tiles, product.blocks, product.rows.height, BLOCK)

    def of(i: Sequence[PrimExpr], piece: PrimExpr) -> PrimExpr:
        *at, block, row, lane = i
        sums = [parts(*at, piece, n, block, row, lane) for n in range(product.partial)]
        return made(sum(sums[1:], sums[0]), at, piece, block, row, lane)

    if product.pieces == 1:
        return te.compute(shape, lambda *i: of(i, 0), name="products")
    (piece,) = reduce_axes(piece=product.pieces)
    return te.compute(shape, lambda *i: te.sum(of(i, piece), axis=piece), name="products")


def schedule_by_floats(
    sch: Schedule, stages: Grouped, loops: Loops, plan: FewBitsPlan
) -> list[Finish]:
    """As a product of floats in pieces; -> what is to be done last."""
    parts, product = Facts(sch, stages.parts), plan.product
    tile, piece, finish = pieces_around(sch, Facts(sch, stages.sums), loops, product)
    split = 0 if plan.by_panels else max(1, plan.word // product.partial)
    _, start = in_registers(sch, parts, tile, product, split, partial=True)
    if stages.panel is not None:
        _panel(sch, stages.panel, loops.panel if piece is None else piece, plan)
    else:
        behind = 4 + (product.lanes < BLOCK)  # partial sums, rows, blocks, vectors and their lanes
        sch.unroll(sch.get_loops(parts.block)[-behind - 1])
    return [start, *finish]


def _panel(sch: Schedule, panel: Tensor, at: Loop, plan: FewBitsPlan) -> None:
    """A piece of a panel as floats, a word at a time."""
    sch.compute_at(panel, at, preserve_unit_loops=True)
    *_, k, lane = sch.get_loops(panel)
    if plan.product.size % plan.word == 0:
        _, inner = sch.split(k, [None, plan.word])
        sch.unroll(inner)
    vectorize(sch, lane, plan.product.lanes)
