"""dense-gelu-dense as one kernel: the hidden activations never leave it."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np

from ..._tvm import tir
from ...compute import mathfn
from ...language.case import Case
from ...language.composite import Composite
from ...language.pattern import either, op
from ...machine import machine
from ..kernels.rows.loops import tile_rows
from ..kernels.rows.product import PRODUCTS, product_at
from ..kernels.rows.schedule import dense_tiles
from ..kernels.rows.tiles import BLOCK, epilogue, pack_weight, product, result
from ..steps.blocks import facts
from ..steps.loops import parallel_over
from .dense import check_bias, check_residual, rows_of


def _pattern(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, residual: Any) -> Any:
    hidden = op.gelu(op.bias_add(op.dense(x, w1), b1))
    y = op.bias_add(op.dense(hidden, w2), b2)
    return either(op.add(y, residual), y)


def _check(match: Any) -> None:
    check_bias(match)
    check_residual(match)


def _reference(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, residual: Any = None) -> Any:
    hidden = x @ w1.T + b1
    y = hidden * (1 + np.vectorize(erf)(hidden / np.sqrt(2))) / 2 @ w2.T + b2
    return y if residual is None else y + residual


def _compute(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, residual: Any = None, *, ops: Any) -> Any:
    rows, (shape, dtype) = rows_of(ops), ops.dense.outputs[0]
    units = ops.dense_1.outputs[0][0][-1]

    def read_hidden(*i: Any) -> Any:
        *at, row, k = i
        return hidden(*at, tir.floordiv(k, BLOCK), row, tir.floormod(k, BLOCK))

    first = product(
        rows, lambda *i: x(*rows.of(i[:-1]), i[-1]), int(x.shape[-1]), w1, dtype, "hidden_products"
    )
    hidden = epilogue(first, b1, ops.dense.outputs[0], mathfn.gelu, "hidden")
    second = product(rows, read_hidden, shape[-1], w2, dtype, "products")
    outputs = epilogue(second, b2, ops.dense_1.outputs[0], lambda value: value, "outputs")
    return result(rows, outputs, units, "result", residual)


def _schedule(sch: Any, ops: Any, target: Any) -> None:
    cpu, rows = machine(target), rows_of(ops)
    stages = {block.name: block for block in facts(sch)}
    hidden = ("hidden", *(f"hidden_{name}" for name in PRODUCTS))
    # The second dense in register tiles, and the first: for each, a core has columns of its own,
    # so that every weight is read once. The hidden activations lie as the second one reads them.
    _, finish = dense_tiles(sch, stages, rows, cpu, hidden, split=BLOCK)
    loops = tile_rows(sch, stages["hidden"], rows, cpu)
    finish += product_at(sch, stages, "hidden_products", loops, cpu)
    parallel_over(sch, loops.parallel)
    for last in finish:
        last()


def _of_batches(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    hidden = op.gelu(op.bias_add(op.dense(x, w1), b1, axis=-1))
    return op.bias_add(op.dense(hidden, w2), b2, axis=-1)


dense_gelu_dense = Composite(
    "dense_gelu_dense",
    _pattern,
    {"llvm": _schedule, "c": _schedule},
    _reference,
    check=_check,
    compute=_compute,
    pack={"w1": pack_weight, "w2": pack_weight},
    why="the hidden activations never leave the kernel",
    cases=(
        Case(x=(5, 24), w1=(40, 24), b1=(40,), w2=(9, 40), b2=(9,)),
        Case(
            _of_batches,
            x=(3, 37, 24),
            w1=(40, 24),
            b1=(40,),
            w2=(9, 40),
            b2=(9,),
            constants=["w1", "b1", "w2", "b2"],
        ),
        Case(
            x=(45, 96),
            w1=(384, 96),
            b1=(384,),
            w2=(96, 384),
            b2=(96,),
            residual=(45, 96),
            constants=["w1", "b1", "w2", "b2"],
        ),
        Case(
            x=(128, 768),
            w1=(3072, 768),
            b1=(3072,),
            w2=(768, 3072),
            b2=(768,),
            constants=["w1", "b1", "w2", "b2"],
        ),
    ),
)
