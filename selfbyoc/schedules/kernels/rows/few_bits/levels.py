"""Rows as levels of 8 bits in groups, multiplied by a weight's levels of few bits.

    sum over groups of unit * scale * (sum of level * weight's level - zero * sum of level)

The inner sums are of integers, by the CPU's products of words. A word of four neighbouring levels
is multiplied by four bytes that a shift and an and make of a word of the weight, or two of 16 bits
by two. Levels of rows have signs, those of weights have none.
"""

from __future__ import annotations

from dataclasses import dataclass

from .....ops.kind import broadcast
from .....tvm import te, tir
from .....tvm.own_ops import ADDED_HALVES, HALVES, LEAST_OF, TOTAL_OF_HALVES, dot, of_halves
from .....tvm.types import PrimExpr, Schedule, Tensor
from ....steps.blocks import Facts
from ....steps.loops import Finish, prefetch_next
from ....steps.registers import sum_in_tile, weight_of
from ....steps.tensors import reduce_axes
from ....steps.tiles import BLOCK
from ...words import all_alike
from ..tiles import Loops
from .plan import FewBitsPlan, LevelProducts
from .rows import LevelsOfRows, levels_of_rows
from .words import BYTES, in_whole_groups, levels_of_word

_SUM_OF_HALVES = te.comm_reducer(
    lambda a, b: of_halves(ADDED_HALVES, a, b), lambda dtype: tir.const(0, dtype), "sum_of_halves"
)


@dataclass(frozen=True)
class ByLevels:
    """`parts` [outer, tile, piece, block, row, lane] are sums of integers, `sums` of all pieces."""

    parts: Tensor
    sums: Tensor
    rows: LevelsOfRows


def rows_of_levels(x: Tensor, plan: FewBitsPlan) -> LevelsOfRows:
    """The rows [lead, k] as levels."""
    assert plan.levels is not None, f"rows are floats in {plan}"
    x = in_whole_groups(x, plan.product.pieces * plan.levels.at_once)
    return levels_of_rows(x, plan.group, plan.levels, plan.product.lanes)


def sums_by_levels(
    found: LevelsOfRows, levels: Tensor, scale: Tensor, zero: Tensor, plan: FewBitsPlan
) -> ByLevels:
    """The sums of rows by a packed weight."""
    products, product, rows = plan.levels, plan.product, plan.product.rows
    assert products is not None, f"rows are floats in {plan}"
    # Bytes with signs count from -128 on; fewer bits are the same with and without.
    moved = -LEAST_OF[products.kind] if plan.bits == 8 else 0
    parts = _parts(found, levels, moved, plan, products)
    (piece,) = reduce_axes(piece=product.pieces)

    def scaled(*i: PrimExpr) -> PrimExpr:
        *at, block, row, lane = i
        where, group = rows.of((*at, row)), tir.floordiv(piece * products.at_once, plan.group)
        total = parts(*at, piece, block, row, lane)
        total = of_halves(TOTAL_OF_HALVES, total) if products.in_halves else total
        factor, point = (
            broadcast(a, (block, group, lane)).astype("float32") for a in (scale, zero)
        )
        point = point - float(moved) if moved else point
        value = total.astype("float32") - point * found.total(*where, piece)
        return te.sum(factor * value * found.unit(*where, piece), axis=piece)

    tile = (product.blocks, rows.height, BLOCK)
    return ByLevels(parts, te.compute((*rows.tiles, *tile), scaled, name="products"), found)


def _parts(
    found: LevelsOfRows, levels: Tensor, moved: int, plan: FewBitsPlan, products: LevelProducts
) -> Tensor:
    product, of_word = plan.product, plan.word // products.word
    halves, each = BYTES // products.word, products.at_once // BYTES
    (k,) = reduce_axes(k=product.size)

    def weight(b: PrimExpr, at: PrimExpr, lane: PrimExpr) -> PrimExpr:
        word = levels(b, tir.floordiv(at, of_word), lane)
        part = levels_of_word(word, tir.floormod(at, of_word), plan.bits, products.word)
        return part ^ all_alike(tir.const(moved, "int32"), BYTES) if moved else part

    def element(*i: PrimExpr) -> PrimExpr:
        *at, piece, block, row, lane = i
        near = tir.floormod(k, halves) * each + tir.floordiv(k, halves)
        read = found.word(*product.rows.of((*at, row)), piece, near)
        left = weight(block, piece * product.size + k, lane)
        if products.in_halves:
            return _SUM_OF_HALVES(of_halves(HALVES, left, read), axis=k)
        return te.sum(dot(products.kind, left, read), axis=k)

    tile = (product.pieces, product.blocks, product.rows.height, BLOCK)
    return te.compute((*product.rows.tiles, *tile), element, name="products_parts")


def schedule_by_levels(
    sch: Schedule, stages: ByLevels, loops: Loops, plan: FewBitsPlan
) -> list[Finish]:
    """A tile of rows over all groups, the sums of one in registers; -> what is to be done last."""
    assert plan.levels is not None, f"rows are floats in {plan}"
    lanes, of_word = plan.product.lanes, plan.word // plan.levels.word
    sums, parts = Facts(sch, stages.sums).block, Facts(sch, stages.parts).block
    sch.compute_at(sums, loops.tile, preserve_unit_loops=True)
    sch.set_scope(sums, 0, "local")
    *_, blocks, row, lane, group = sch.get_loops(sums)
    start = sum_in_tile(sch, sums, [group], [row, blocks, lane], lanes)
    sch.compute_at(parts, group, preserve_unit_loops=True)
    sch.set_scope(parts, 0, "local")
    *_, blocks, row, lane, k = sch.get_loops(parts)
    # A word at a time: of a whole piece LLVM takes one row after the other, and spills the weight.
    word, k = sch.split(k, [None, of_word])
    first = sum_in_tile(sch, parts, [word, k], [row, blocks, lane], lanes)
    sch.unroll(k)
    if plan.ahead:
        prefetch_next(sch, word, word, weight_of(Facts(sch, parts)), (0, plan.ahead, 0))
    return [first, start]
