"""Attention of few queries, as when decoding: lanes are columns, as rows would not fill them.

m is a query, n a key, e a column. A score is a row of keys times the query, in `LANES` partial
sums; the result adds up rows of values. Keys and values are read once for each query, as they lie.
"""

from __future__ import annotations

import math
from typing import Any

from ...._tvm import te
from ....machine import Machine, machine_at_hand
from ...steps.blocks import Facts, divisor
from ...steps.loops import Finish, vectorize
from ..rows.melt import melt_rows
from ..rows.rowwise import RowwisePlan, rowwise_plan, softmax
from .shape import Read, Shape, laid_out

LANES = 16  # partial sums of a score
# Stages of the softmax, each after all of its readers.
SOFTMAX_STAGES = ("inverse", "total", "total_lanes", "power", "peak", "peak_lanes")
LEAST_PRODUCTS = 1 << 16  # some 3 us: a parallel region costs 1-2


def attention_of_few(queries: Read, keys: Read, values: Read, masked: Read, shape: Shape) -> Any:
    """The whole composite, from its arguments as functions of (batch ..., row, column)."""
    lanes = divisor(shape.depth, LANES)
    step = te.reduce_axis((0, shape.depth // lanes), name="step")
    lane = te.reduce_axis((0, lanes), name="lane")
    n = te.reduce_axis((0, shape.keys), name="n")
    rows = (*shape.batch, shape.queries)

    def partial(*i: Any) -> Any:
        *batch, m, key, at = i
        d = step * lanes + at
        return te.sum(queries(*batch, m, d) * keys(*batch, key, d), axis=step)

    parts = te.compute((*rows, shape.keys, lanes), partial, name="partial")
    products = te.compute(
        (*rows, shape.keys), lambda *i: te.sum(parts(*i, lane), axis=lane), name="products"
    )
    scores = te.compute(products.shape, lambda *i: masked(products(*i), *i), name="scores")
    normal, _ = softmax(scores, (*rows, shape.keys), _rows(shape, machine_at_hand()))
    weights = te.compute(products.shape, normal, name="weights")
    weighted = te.compute(
        (*rows, shape.columns),
        lambda *i: te.sum(weights(*i[:-1], n) * values(*i[:-2], n, i[-1]), axis=n),
        name="weighted",
    )
    return laid_out(weighted, shape)


def _rows(shape: Shape, cpu: Machine) -> RowwisePlan:
    """A task has one row of weights."""
    return rowwise_plan(1, shape.keys, cpu, within=True)


def schedule_few(sch: Any, stages: dict[str, Facts], shape: Shape, cpu: Machine) -> None:
    """for (batch, query) in parallel: products, scores, softmax, weighted."""
    lanes = cpu.lanes("float32")
    *outer, column = sch.get_loops(stages["result"].block)
    task = sch.fuse(*outer)
    vectorize(sch, column, lanes)
    finish = [_product(sch, stages["weighted"], task, lanes)]
    before = [stages[name].block for name in SOFTMAX_STAGES]
    finish += melt_rows(sch, before, stages["weights"].block, _rows(shape, cpu), task)
    for name in ("scores", "products"):
        sch.compute_at(stages[name].block, task, preserve_unit_loops=True)
    vectorize(sch, list(sch.get_loops(stages["scores"].block))[-1], lanes)
    *_, key, lane = sch.get_loops(stages["products"].block)
    sch.unroll(lane)
    finish.append(_product(sch, stages["partial"], key, lanes))
    if math.prod(shape.batch) * shape.queries * shape.keys * shape.depth >= LEAST_PRODUCTS:
        sch.parallel(task)
    for last in finish:
        last()


def _product(sch: Any, block: Facts, at: Any, lanes: int) -> Finish:
    """Sums in registers: the reduced axis outside, vectors inside."""
    sch.compute_at(block.block, at, preserve_unit_loops=True)
    sch.set_scope(block.block, 0, "local")
    *_, lane, reduced = sch.get_loops(block.block)
    sch.reorder(reduced, lane)
    vectorize(sch, lane, lanes)

    def start() -> None:
        *_, loop = sch.get_loops(sch.decompose_reduction(block.block, reduced))
        sch.vectorize(loop)

    return start
