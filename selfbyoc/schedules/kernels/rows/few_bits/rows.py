"""Rows of floats as levels of 8 bits in groups, from -127 to 127, in words of four or of two."""

from __future__ import annotations

from dataclasses import dataclass

from .....ops.few_bits import MOST, levels_per_unit, unit_of_level
from .....tvm import te, tir
from .....tvm.own_ops import nearest
from .....tvm.rounding import nearbyint
from .....tvm.types import PrimExpr, Schedule, Tensor
from ....steps.blocks import Facts, divisor
from ....steps.loops import Finish
from ....steps.parallel import parallel_over
from ....steps.registers import sum_in_tile
from ....steps.tensors import extents, reduced_in_lanes, split_index
from ...words import word_of
from .plan import LevelProducts
from .words import BYTES


@dataclass(frozen=True)
class LevelsOfRows:
    """Rows as levels: `packed` [lead, piece, words + 2] has the words of a piece of a group, what a
    level stands for, and the sum of its levels, floats as bits; `before` is what that is computed
    of, each after all of its readers.
    """

    packed: Tensor
    before: tuple[Tensor, ...]

    def word(self, *index: PrimExpr) -> PrimExpr:
        """Of (row ..., piece, number)."""
        return self.packed(*index)

    def unit(self, *piece: PrimExpr) -> PrimExpr:
        """What a level of a piece stands for."""
        return tir.reinterpret("float32", self.packed(*piece, self.packed.shape[-1] - 2))

    def total(self, *piece: PrimExpr) -> PrimExpr:
        """The sum of its levels."""
        return tir.reinterpret("float32", self.packed(*piece, self.packed.shape[-1] - 1))


def levels_of_rows(x: Tensor, group: int, products: LevelProducts, lanes: int) -> LevelsOfRows:
    """The stages of rows [lead, k of whole groups] as levels."""
    size, count = products.at_once, products.word
    *lead, depth = extents(x)
    halves, each = BYTES // count, size // BYTES
    words = halves * each

    def magnitude(*i: PrimExpr) -> PrimExpr:
        return te.abs(x(*i[:-2], i[-2] * group + i[-1]))

    groups, pieces = (*lead, depth // group), (*lead, depth // size)
    width = divisor(group, lanes)
    peak, peak_lanes = reduced_in_lanes(magnitude, groups, group, te.max, "peak", width)
    inverse = te.compute(groups, lambda *i: levels_per_unit(peak(*i)), name="inverse")

    def over(*i: PrimExpr) -> PrimExpr:
        *row, piece, at = i
        return x(*row, piece * size + at) * inverse(*row, tir.floordiv(piece * size, group))

    def rounded(*i: PrimExpr) -> PrimExpr:
        return nearbyint(over(*i))

    width = divisor(size, lanes)
    total, total_lanes = reduced_in_lanes(rounded, pieces, size, te.sum, "levels", width)

    def word(*i: PrimExpr) -> PrimExpr:
        *piece, half, place = i
        at = [place * BYTES + half + halves * j for j in range(count)]
        return word_of([nearest(over(*piece, k), 0, -MOST, MOST) for k in at])

    made = te.compute((*pieces, halves, each), word, name="words")

    def element(*i: PrimExpr) -> PrimExpr:
        *piece, at = i
        *row, last = piece
        unit = unit_of_level(peak(*row, tir.floordiv(last * size, group)))
        factor = tir.if_then_else(at == words, unit, total(*piece))
        read = made(*piece, *split_index(tir.Min(at, words - 1), each))
        return tir.if_then_else(at < words, read, tir.reinterpret("int32", factor))

    packed = te.compute((*pieces, words + 2), element, name="levels_of_rows")
    return LevelsOfRows(packed, (made, total, total_lanes, inverse, peak, peak_lanes))


def schedule_levels(sch: Schedule, rows: LevelsOfRows, lanes: int) -> list[Finish]:
    """All stages of a row one after the other."""
    packed = Facts(sch, rows.packed)
    *lead, _, last = sch.get_loops(packed.block)
    sch.unroll(last)
    row = parallel_over(sch, lead, packed.size)
    finish: list[Finish] = []
    for block in rows.before:
        sch.compute_at(block, row, preserve_unit_loops=True)
        stage, (*_, inner, last) = Facts(sch, block), sch.get_loops(block)
        if stage.reduction and len(stage.spatial) == len(packed.spatial):  # a partial one a lane
            finish.append(sum_in_tile(sch, block, [last], [inner], lanes))
        elif stage.reduction:
            sch.unroll(last)
        elif len(stage.spatial) > len(packed.spatial):
            sch.vectorize(last)
    return finish
