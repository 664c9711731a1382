"""dense-gelu-dense as one kernel: the hidden activations never leave it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erf
from typing import TYPE_CHECKING

import numpy as np

from ...codegen.info.ops import Ops
from ...language.case import Case
from ...language.composite import Composite
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.pattern import either, op
from ...machine import Machine
from ...ops import mathfn
from ...tvm import tir
from ...tvm.types import PrimExpr, Schedule, Tensor
from ..kernels.bfloat16 import WORD
from ..kernels.rows.compute import Dense, Product, epilogue, factors, in_tiles, product, result
from ..kernels.rows.forms import ProductPlan
from ..kernels.rows.halves import (
    become_floats,
    blocks_of_words,
    machine_of,
    products_of,
    schedule_words,
    steps_of,
)
from ..kernels.rows.pack import pack_factor
from ..kernels.rows.plan import lead_of, passes_over, plan_rows, product_plan
from ..kernels.rows.product import product_at
from ..kernels.rows.schedule import dense_tiles, in_parallel, prepare
from ..kernels.rows.tiles import tile_rows
from ..steps.faults import Faults, unlike
from ..steps.tiles import BLOCK
from .dense import check_bias, check_held, check_residual, held

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(x: Node, w1: Node, b1: Node, w2: Node, b2: Node, residual: Node) -> Node:
    hidden = op.gelu(op.bias_add(op.dense(x, held(w1)), b1))
    y = op.bias_add(op.dense(hidden, held(w2)), b2)
    return either(op.add(y, residual), y)


def _check(match: Match) -> None:
    check_bias(match)
    check_held(match)
    check_residual(match)


def _reference(
    x: np.ndarray,
    w1: np.ndarray,
    b1: np.ndarray,
    w2: np.ndarray,
    b2: np.ndarray,
    residual: np.ndarray | None = None,
) -> np.ndarray:
    hidden = x @ w1.T + b1
    y = hidden * (1 + np.vectorize(erf)(hidden / np.sqrt(2))) / 2 @ w2.T + b2
    return y if residual is None else y + residual


@dataclass(frozen=True)
class ChainPlan:
    """Two products over the same tiles of rows."""

    first: ProductPlan
    second: ProductPlan

    def __str__(self) -> str:
        return f"first dense: {self.first}; second: {self.second}"

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of both plans."""
        both = (ops.dense, "w1", self.first), (ops.dense_1, "w2", self.second)
        for dense, weight, plan in both:
            products = products_of(ops, weight, cpu)
            yield from (f"{dense.name}: {text}" for text in plan.faults_of(dense, cpu, products))
        for kept in ("rows", "passes"):
            first, second = getattr(self.first, kept), getattr(self.second, kept)
            yield from unlike(kept, first, second)


@dataclass(frozen=True)
class Chain:
    """The first dense and its activations, in tiles; these in words, if the second multiplies such;
    the second one.
    """

    products: Product
    hidden: Tensor
    words: Tensor | None
    second: Dense

    @property
    def result(self) -> Tensor:
        """Of the whole composite."""
        return self.second.result


def _plan(ops: Ops, machine: Machine) -> ChainPlan:
    (hidden, dtype), (shape, _) = ops.dense.outputs[0], ops.dense_1.outputs[0]
    kinds = products_of(ops, "w1", machine), products_of(ops, "w2", machine)
    depths = ops.dense.inputs[0][0][-1], hidden[-1]
    steps = [steps_of(depth, kind) for depth, kind in zip(depths, kinds, strict=True)]
    cpus = [machine_of(machine, kind) for kind in kinds]
    halves = [become_floats(ops, w, kind) for w, kind in zip(("w1", "w2"), kinds, strict=True)]
    rows = plan_rows(
        lead_of(hidden), steps[0], hidden[-1], dtype, cpus[0], steps[1], halves=all(halves)
    )
    passes = passes_over(rows, hidden[-1], machine)
    first = product_plan(
        rows, steps[0], hidden[-1], dtype, cpus[0], "hidden", passes=passes, halves=halves[0]
    )
    second = product_plan(
        rows, steps[1], shape[-1], dtype, cpus[1], "outputs", passes=passes, halves=halves[1]
    )
    return ChainPlan(replace(first, products=kinds[0]), replace(second, products=kinds[1]))


def _compute(
    x: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    residual: Tensor | None = None,
    *,
    ops: Ops,
    plan: ChainPlan,
) -> Chain:
    rows, out = plan.first.rows, ops.dense_1.outputs[0]
    block = _block(plan)

    def read_hidden(*i: PrimExpr) -> PrimExpr:
        *at, row, k = i
        return read(*at, tir.floordiv(k, block), row, tir.floormod(k, block))

    x_read = in_tiles(factors(x, plan.first), rows)
    first = product(x_read, w1, out[1], plan.first, "hidden_products")
    hidden = epilogue(first.sums, b1, ops.dense.outputs[0], mathfn.gelu, "hidden")
    depth = ops.dense_1.inputs[0][0][-1]
    words = blocks_of_words(hidden, depth) if plan.second.products else None
    read = hidden if words is None else words
    second = product(read_hidden, w2, out[1], plan.second)
    outputs = epilogue(second.sums, b2, out)
    dense = Dense(second, outputs, result(rows, outputs, out[0][-1], residual))
    return Chain(first, hidden, words, dense)


def _block(plan: ChainPlan) -> int:
    """Steps of the second sum that lie together."""
    return BLOCK // WORD if plan.second.products else BLOCK


def _schedule(sch: Schedule, stages: Chain, plan: ChainPlan) -> None:
    # The second dense in register tiles, and the first: for each, a core has columns of its own,
    # so that every weight is read once. The hidden activations lie as the second one reads them.
    # Those of a pass are computed in front of it, and stay in the cache.
    prepare(sch, stages, plan.first.lanes)
    loops, finish = dense_tiles(sch, stages.second, plan.second, split=_block(plan))
    in_parallel(sch, loops.parallel, plan.second)
    for one in loops.passes[-1:]:
        for before in filter(None, (stages.words, stages.hidden)):
            sch.compute_at(before, one, preserve_unit_loops=True)
    if stages.words is not None:
        schedule_words(sch, stages.words, parallel=plan.second.parallel)
    first = replace(plan.first, passes=0)  # of one pass
    loops = tile_rows(sch, stages.hidden, first)
    finish += product_at(sch, stages.products, loops, first)
    in_parallel(sch, loops.parallel, first)
    for last in finish:
        last()


_WEIGHTS = ("w1", "b1", "w2", "b2")
_PACK = {
    "w1": lambda weight, plan: pack_factor(weight, plan.first),
    "w2": lambda weight, plan: pack_factor(weight, plan.second),
}


def _of_batches(x: Node, w1: Node, b1: Node, w2: Node, b2: Node) -> Node:
    hidden = op.gelu(op.bias_add(op.dense(x, w1), b1, axis=-1))
    return op.bias_add(op.dense(hidden, w2), b2, axis=-1)


def _of_cast_halves(x: Node, w1: Node, b1: Node, w2: Node, b2: Node) -> Node:
    floats = [op.cast(weight, dtype="float32") for weight in (w1, w2)]
    return _of_batches(x, floats[0], b1, floats[1], b2)


def _added(x: Node, w1: Node, b1: Node, w2: Node, b2: Node, residual: Node) -> Node:
    return op.add(_of_batches(x, w1, b1, w2, b2), residual)


dense_gelu_dense = Composite(
    "dense_gelu_dense",
    _pattern,
    reference=_reference,
    kernel=Kernel(_plan, _compute, _schedule, pack=_PACK),
    check=_check,
    epilogue=True,
    why="the hidden activations never leave the kernel",
    cases=(
        Case(_of_batches, x=(5, 24), w1=(40, 24), b1=(40,), w2=(9, 40), b2=(9,)),
        Case(
            _of_batches, x=(3, 37, 24), w1=(40, 24), b1=(40,), w2=(9, 40), b2=(9,),
            constants=_WEIGHTS,
        ),
        Case(
            x=(6, 30), w1=((40, 30), "float16"), b1=(40,), w2=((31, 40), "float16"), b2=(31,),
            residual=(6, 31), constants=_WEIGHTS,
        ),
        Case(
            _of_cast_halves, x=(21, 30), w1=((40, 30), "float16"), b1=(40,),
            w2=((31, 40), "float16"), b2=(31,), constants=_WEIGHTS,
        ),
        Case(
            _added, x=(45, 96), w1=(384, 96), b1=(384,), w2=(96, 384), b2=(96,),
            residual=(45, 96), constants=_WEIGHTS,
        ),
        Case(
            _of_batches, x=(128, 768), w1=(3072, 768), b1=(3072,), w2=(768, 3072), b2=(768,),
            constants=_WEIGHTS,
        ),
    ),
)  # fmt: skip
