"""Attention over blocks of keys as te.compute: first each block alone, then all of them together.

m is a query, n a key of a block, d the shared axis, e a column. What comes after the last key is a
copy of it, whose power is zero. A block may be hidden altogether (-inf): its powers are zeros, and
its largest score, which stays -inf, makes its factor zero; NaN comes of rows that no block shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....ops import mathfn
from ....ops.softmax import Softmax
from ....tvm import te, tir
from ....tvm.nans import ANY_NAN
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import reduce_axes, reduced_in_lanes
from ...steps.tiles import BLOCK
from .operands import Read, laid_out
from .split_plan import SplitPlan

# Queries across lanes, partial sums, products, scores.
Before = tuple[Tensor | None, Tensor | None, Tensor, Tensor]


@dataclass(frozen=True)
class Together:
    """The stages of all blocks, in order."""

    whole: Tensor  # [query], the largest score
    factor: Tensor  # [query, block]
    total: Tensor  # [query]
    inverse: Tensor
    combined: Tensor  # [query, column]
    normalised: Tensor
    result: Tensor


@dataclass(frozen=True)
class SplitStages:
    """The stages in order: those of a block of keys, then those of all."""

    queries: Tensor | None  # [d, lane]; None if lanes are of the depth
    partial: Tensor | None  # [block, query, key, lane], sums of a score; None if a query is a lane
    products: Tensor  # [block, key, lane], or [block, query, key], as scores and powers
    scores: Tensor
    peak_lanes: Tensor | None  # [block, query, lane]
    peak: Tensor  # [block, lane] or [block, query]
    peaks: Tensor  # the same in memory, as `totals` and `sums`
    power: Tensor
    total_lanes: Tensor | None
    total: Tensor
    totals: Tensor
    weighted: Tensor  # [block, query, column]
    sums: Tensor
    together: Together

    @property
    def result(self) -> Tensor:
        """Of the whole composite."""
        return self.together.result


def attention_of_blocks(
    queries: Read, keys: Read, values: Read, masked: Read, parts: Softmax, plan: SplitPlan
) -> SplitStages:
    """The whole composite, from its arguments as functions of (batch ..., row, column)."""
    scored = _scores_by_depth if plan.depth_lanes > 1 else _scores_by_lanes
    across, partial, products, scores = scored(queries, keys, masked, plan)
    peak, peak_lanes = _over_keys(scores, te.max, "peak", plan)
    power = _power(scores, peak, plan)
    total, total_lanes = _over_keys(power, te.sum, "total", plan)
    weighted = _weighted(power, values, plan)
    peaks, totals = _stored(peak, "peaks"), _stored(total, "totals")
    sums = _stored(weighted, "sums")
    return SplitStages(
        across, partial, products, scores, peak_lanes, peak, peaks, power, total_lanes, total,
        totals, weighted, sums, _together(peaks, totals, sums, parts, plan),
    )  # fmt: skip


def _stored(found: Tensor, name: str) -> Tensor:
    """The same in memory."""
    return te.compute(found.shape, lambda *i: found(*i), name=name)


def _key(i: PrimExpr, n: PrimExpr, plan: SplitPlan) -> tuple[PrimExpr, PrimExpr]:
    """Which key the n-th of the i-th block is, and the one that is read there."""
    key = i * plan.block + n
    return key, tir.Min(key, plan.shape.keys - 1)


def _scores_by_lanes(queries: Read, keys: Read, masked: Read, plan: SplitPlan) -> Before:
    """Of [block, key, lane]."""
    shape, ndim = plan.shape, len(plan.shape.batch)
    (d,) = reduce_axes(d=shape.depth)
    across = te.compute(
        (*shape.batch, shape.depth, plan.lanes),
        lambda *i: queries(*i[:ndim], tir.Min(i[-1], shape.queries - 1), i[-2]),
        name="queries",
    )

    def product(*i: PrimExpr) -> PrimExpr:
        _, near = _key(i[ndim], i[-2], plan)
        return te.sum(keys(*i[:ndim], near, d) * across(*i[:ndim], d, i[-1]), axis=d)

    def score(*i: PrimExpr) -> PrimExpr:
        _, near = _key(i[ndim], i[-2], plan)
        return masked(products(*i), *i[:ndim], tir.Min(i[-1], shape.queries - 1), near)

    extents = (*shape.batch, plan.blocks, plan.block, plan.lanes)
    products = te.compute(extents, product, name="products")
    return across, None, products, te.compute(extents, score, name="scores")


def _scores_by_depth(queries: Read, keys: Read, masked: Read, plan: SplitPlan) -> Before:
    """Of [block, query, key]."""
    shape, ndim, lanes = plan.shape, len(plan.shape.batch), plan.depth_lanes
    step, lane = reduce_axes(step=shape.depth // lanes, lane=lanes)

    def element(*i: PrimExpr) -> PrimExpr:
        *batch, block, m, n, at = i
        d = step * lanes + at
        _, near = _key(block, n, plan)
        return te.sum(queries(*batch, m, d) * keys(*batch, near, d), axis=step)

    def score(*i: PrimExpr) -> PrimExpr:
        _, near = _key(i[ndim], i[-1], plan)
        return masked(products(*i), *i[:ndim], i[-2], near)

    extents = (*shape.batch, plan.blocks, shape.queries, plan.block)
    partial = te.compute((*extents, lanes), element, name="partial")
    products = te.compute(extents, lambda *i: te.sum(partial(*i, lane), axis=lane), name="products")
    return None, partial, products, te.compute(extents, score, name="scores")


def _over_keys(
    rows: Tensor, how: Callable[..., PrimExpr], name: str, plan: SplitPlan
) -> tuple[Tensor, Tensor | None]:
    """The largest or the sum of each query's keys in a block, and its partial results."""
    if plan.depth_lanes > 1:
        kept = tuple(rows.shape[:-1])
        return reduced_in_lanes(rows, kept, plan.block, how, name, BLOCK, ANY_NAN)
    (n,) = reduce_axes(n=plan.block)
    extents = (*rows.shape[:-2], plan.lanes)
    return te.compute(
        extents, lambda *i: how(rows(*i[:-1], n, i[-1]), axis=n), name=name, attrs=ANY_NAN
    ), None


def _power(scores: Tensor, peak: Tensor, plan: SplitPlan) -> Tensor:
    """Of what a score is less than the largest of its block; zero after the last key."""
    ndim, at = len(plan.shape.batch), -1 if plan.depth_lanes > 1 else -2
    least, zero = tir.min_value("float32"), tir.const(0, "float32")

    def element(*i: PrimExpr) -> PrimExpr:
        of_row = i[:-1] if plan.depth_lanes > 1 else (*i[: ndim + 1], i[-1])
        key, near = _key(i[ndim], i[at], plan)
        power = mathfn.exp_of_difference(scores(*i) - tir.Max(least, peak(*of_row)))
        return tir.Select(key == near, power, zero)

    return te.compute(scores.shape, element, name="power")


def _weighted(power: Tensor, values: Read, plan: SplitPlan) -> Tensor:
    """[block, query, column], of queries in whole tiles."""
    shape, ndim = plan.shape, len(plan.shape.batch)
    (n,) = reduce_axes(n=plan.block)

    def element(*i: PrimExpr) -> PrimExpr:
        _, near = _key(i[ndim], n, plan)
        of_row = (i[-2], n) if plan.depth_lanes > 1 else (n, i[-2])
        return te.sum(power(*i[: ndim + 1], *of_row) * values(*i[:ndim], near, i[-1]), axis=n)

    extents = (*shape.batch, plan.blocks, plan.rows, shape.columns)
    return te.compute(extents, element, name="weighted")


def _together(
    peaks: Tensor, totals: Tensor, sums: Tensor, parts: Softmax, plan: SplitPlan
) -> Together:
    """What the blocks made, added up."""
    shape, ndim, count = plan.shape, len(plan.shape.batch), plan.blocks
    rows = (*shape.batch, shape.queries)
    of_peak, of_total, of_sums = (reduce_axes(i=count)[0] for _ in range(3))
    whole = te.compute(
        rows,
        lambda *i: te.max(peaks(*i[:-1], of_peak, i[-1]), axis=of_peak),
        name="whole",
        attrs=ANY_NAN,
    )

    def power(*i: PrimExpr) -> PrimExpr:
        *batch, m, block = i
        peak = peaks(*batch, block, m)
        return mathfn.exp_of_difference(peak - parts.subtracted(whole(*batch, m)))

    factor = te.compute((*rows, count), power, name="factor")
    total = te.compute(
        rows,
        lambda *i: te.sum(factor(*i, of_total) * totals(*i[:-1], of_total, i[-1]), axis=of_total),
        name="whole_total",
    )
    inverse = te.compute(rows, lambda *i: parts.inverse(total(*i)), name="inverse")

    def added(*i: PrimExpr) -> PrimExpr:
        found = sums(*i[:ndim], of_sums, *i[ndim:])
        return te.sum(factor(*i[:-1], of_sums) * found, axis=of_sums)

    combined = te.compute((*rows, shape.columns), added, name="combined")
    normalised = te.compute(
        combined.shape,
        lambda *i: parts.multiplied(combined(*i), inverse(*i[:-1])),
        name="normalised",
    )
    result = laid_out(normalised, shape)
    return Together(whole, factor, total, inverse, combined, normalised, result)
