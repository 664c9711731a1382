"""Attention of few queries, as when decoding: lanes are columns, as rows would not fill them.

m is a query, n a key, e a column. A score is a row of keys times the query, in partial sums; the
result adds up rows of values. Keys and values are read once for each query, as they lie.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ....ops import mathfn
from ....ops.softmax import Softmax
from ....tvm import te
from ....tvm.types import Block, Loop, PrimExpr, Schedule, Tensor
from ...steps.blocks import divisor
from ...steps.loops import Finish, start_sums, vectorize
from ...steps.tensors import reduced_in_lanes
from .forms import FewPlan
from .operands import Read, laid_out


@dataclass(frozen=True)
class FewStages:
    """The stages of a query, in order; those of the keys end in [key] or in [lane]."""

    partial: Tensor  # [key, lane]
    products: Tensor
    scores: Tensor
    peak_lanes: Tensor
    peak: Tensor
    power: Tensor
    total_lanes: Tensor
    total: Tensor
    inverse: Tensor
    weighted: Tensor  # [column]
    normalised: Tensor
    result: Tensor


def attention_of_few(
    queries: Read, keys: Read, values: Read, masked: Read, parts: Softmax, plan: FewPlan
) -> FewStages:
    """The whole composite, from its arguments as functions of (batch ..., row, column)."""
    shape = plan.shape
    rows = (*shape.batch, shape.queries)
    partial, products = _products(queries, keys, plan)
    scores = te.compute(products.shape, lambda *i: masked(products(*i), *i), name="scores")
    over_keys = functools.partial(
        reduced_in_lanes, rows=rows, count=shape.keys, lanes=plan.key_lanes
    )
    peak, peak_lanes = over_keys(scores, how=te.max, name="peak")
    power = te.compute(
        scores.shape,
        lambda *i: mathfn.exp_of_difference(scores(*i) - parts.subtracted(peak(*i[:-1]))),
        name="power",
    )
    total, total_lanes = over_keys(power, how=te.sum, name="total")
    inverse = te.compute(rows, lambda *i: parts.inverse(total(*i)), name="inverse")
    n = te.reduce_axis((0, shape.keys), name="n")
    weighted = te.compute(
        (*rows, shape.columns),
        lambda *i: te.sum(power(*i[:-1], n) * values(*i[:-2], n, i[-1]), axis=n),
        name="weighted",
    )
    normalised = te.compute(
        weighted.shape,
        lambda *i: parts.multiplied(weighted(*i), inverse(*i[:-1])),
        name="normalised",
    )
    return FewStages(
        partial, products, scores, peak_lanes, peak, power, total_lanes, total, inverse, weighted,
        normalised, laid_out(normalised, shape),
    )  # fmt: skip


def _products(queries: Read, keys: Read, plan: FewPlan) -> tuple[Tensor, Tensor]:
    """Scores in partial sums, and the sums of these."""
    shape, lanes = plan.shape, plan.depth_lanes
    step = te.reduce_axis((0, shape.depth // lanes), name="step")
    lane = te.reduce_axis((0, lanes), name="lane")
    rows = (*shape.batch, shape.queries, shape.keys)

    def element(*i: PrimExpr) -> PrimExpr:
        *batch, m, key, at = i
        d = step * lanes + at
        return te.sum(queries(*batch, m, d) * keys(*batch, key, d), axis=step)

    partial = te.compute((*rows, lanes), element, name="partial")
    return partial, te.compute(
        rows, lambda *i: te.sum(partial(*i, lane), axis=lane), name="products"
    )


def schedule_few(sch: Schedule, stages: FewStages, plan: FewPlan) -> None:
    """for (batch, query) in parallel: products, scores, softmax, weighted."""
    *outer, column = sch.get_loops(stages.result)
    task = sch.fuse(*outer)
    vectorize(sch, column, plan.vector)
    sch.compute_at(stages.normalised, task, preserve_unit_loops=True)
    vectorize(sch, sch.get_loops(stages.normalised)[-1], plan.vector)
    finish = [_in_vectors(sch, stages.weighted, task, plan)]
    sch.compute_at(stages.inverse, task, preserve_unit_loops=True)
    finish += _reduce_row(sch, stages.total, stages.total_lanes, task, plan)
    sch.compute_at(stages.power, task, preserve_unit_loops=True)
    _vectorize_keys(sch, stages.power, plan)
    finish += _reduce_row(sch, stages.peak, stages.peak_lanes, task, plan)
    for stage in (stages.scores, stages.products):
        sch.compute_at(stage, task, preserve_unit_loops=True)
    _vectorize_keys(sch, stages.scores, plan)
    *_, key, lane = sch.get_loops(stages.products)
    sch.unroll(lane)
    finish.append(_in_vectors(sch, stages.partial, key, plan))
    if plan.parallel:
        sch.parallel(task)
    for last in finish:
        last()


def _vectorize_keys(sch: Schedule, block: Block, plan: FewPlan) -> None:
    """Whole vectors; narrower ones where the number of keys asks for it."""
    width = divisor(plan.shape.keys, plan.vector)
    if width > 1:
        sch.vectorize(sch.split(sch.get_loops(block)[-1], [None, width])[1])


def _reduce_row(
    sch: Schedule, whole: Block, partial: Block, at: Loop, plan: FewPlan
) -> list[Finish]:
    """Partial results in vectors, then the one result of them."""
    sch.compute_at(whole, at, preserve_unit_loops=True)
    sch.unroll(sch.get_loops(whole)[-1])
    return [_in_vectors(sch, partial, at, plan)]


def _in_vectors(sch: Schedule, block: Block, at: Loop, plan: FewPlan) -> Finish:
    """A reduction into registers under a loop of its reader."""
    sch.compute_at(block, at, preserve_unit_loops=True)
    return sums_in_vectors(sch, block, plan.vector)


def sums_in_vectors(sch: Schedule, block: Block, lanes: int) -> Finish:
    """A reduction into registers: the reduced axis outside, vectors inside."""
    sch.set_scope(block, 0, "local")
    *_, lane, reduced = sch.get_loops(block)
    sch.reorder(reduced, lane)
    vectorize(sch, lane, lanes)

    return lambda: start_sums(sch, block, reduced, 0)
