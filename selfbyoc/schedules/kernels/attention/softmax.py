"""The softmax of a block of queries, each of which is a lane, as te.compute."""

from __future__ import annotations

from dataclasses import dataclass

from ....ops import mathfn
from ....ops.softmax import Softmax
from ....tvm import te, tir
from ....tvm.nans import ANY_NAN
from ....tvm.types import PrimExpr, Tensor
from ..bfloat16 import word_along
from .forms import BlockPlan
from .masks import MaskStages


@dataclass(frozen=True)
class SoftmaxStages:
    """Those between the scores and the second product."""

    peak: Tensor
    power: Tensor
    partial: Tensor | None
    total: Tensor
    inverse: Tensor


def softmax_of(
    scores: Tensor, parts: Softmax, plan: BlockPlan, masks: MaskStages | None = None
) -> SoftmaxStages:
    """Each lane for itself; the inverse multiplies the result, which has fewer elements."""
    keys = plan.shape.keys
    rows = (*plan.shape.batch, plan.blocks, plan.lanes)
    n = te.reduce_axis((0, plan.key_rows), name="n")
    peak = te.compute(
        rows, lambda *i: te.max(scores(*i[:-1], n, i[-1]), axis=n), name="peak", attrs=ANY_NAN
    )

    def raised(*i: PrimExpr) -> PrimExpr:
        key = tir.Min(i[-2], keys - 1) if plan.has_padding else i[-2]
        score = scores(*i[:-2], key, i[-1])
        power = mathfn.exp_of_difference(score - parts.subtracted(peak(*i[:-2], i[-1])))
        zero = tir.const(0, "float32")
        return tir.Select(key == i[-2], power, zero) if plan.has_padding else power

    power = te.compute((*rows[:-1], plan.powers, plan.lanes), raised, name="power")
    total, partial = _total(power, plan)

    def inverted(*i: PrimExpr) -> PrimExpr:
        found = parts.inverse(total(*i))
        if masks is None:
            return found
        # Always so: TE has no stage that nobody reads, and this one says how far loops go.
        return tir.Select(masks.seen(*i[:-1]) > 0, found, tir.const(0, "float32"))

    inverse = te.compute(rows, inverted, name="inverse")
    return SoftmaxStages(peak, power, partial, total, inverse)


def _total(power: Tensor, plan: BlockPlan) -> tuple[Tensor, Tensor | None]:
    """The sums of the powers, and the partial sums that they are added up from, if they are."""
    rows = (*plan.shape.batch, plan.blocks, plan.lanes)
    s = te.reduce_axis((0, plan.powers // plan.parts), name="s")
    if plan.parts == 1:
        return te.compute(
            rows, lambda *i: te.sum(power(*i[:-1], s, i[-1]), axis=s), name="total"
        ), None
    part = te.reduce_axis((0, plan.parts), name="part")
    partial = te.compute(
        (*rows[:-1], plan.parts, plan.lanes),
        lambda *i: te.sum(power(*i[:-2], s * plan.parts + i[-2], i[-1]), axis=s),
        name="total_parts",
    )
    total = te.compute(
        rows, lambda *i: te.sum(partial(*i[:-1], part, i[-1]), axis=part), name="total"
    )
    return total, partial


def words_of_powers(power: Tensor, plan: BlockPlan) -> Tensor:
    """[block, pair of keys, lane]; what the model rounds is the normalised power, which has as many
    bits.
    """
    *rows, keys, lanes = power.shape

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(lambda n: power(*i[:-2], n, i[-1]), i[-2], int(keys))

    return te.compute((*rows, plan.keys, lanes), word, name="words")
