"""Dense layers: dense (+bias) (+relu, gelu), and dense-gelu-dense as one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tvm import te, tir
from ..composite import Case, Composite
from ..partition.pattern import either, op

BLOCK = 16  # columns of a packed block: one AVX-512 vector of float32, two AVX2 ones


def pack_weight(weight: Any) -> Any:
    """[units, in] -> [units/16, in, 16], zeros behind the last unit: a vector of columns for each k."""
    units, k = (int(extent) for extent in weight.shape)
    blocks = -(-units // BLOCK)

    def element(b: Any, i: Any, lane: Any) -> Any:
        unit = b * BLOCK + lane
        if units % BLOCK == 0:
            return weight(unit, i)
        return tir.if_then_else(unit < units, weight(unit, i), tir.const(0, weight.dtype))

    return te.compute((blocks, k, BLOCK), element, name=f"{weight.op.name}_packed")


def packed_dense(ins: Any, call: Any) -> Any:
    """`dense` on a packed weight."""
    x, weight = ins
    shape, dtype = call.outputs[0].shape, call.outputs[0].dtype
    k = te.reduce_axis((0, int(x.shape[-1])), name="k")

    def product(rows: Any, block: Any, lane: Any) -> Any:
        return te.sum(x(*rows, k).astype(dtype) * weight(block, k, lane).astype(dtype), axis=k)

    if shape[-1] % BLOCK == 0:
        return te.compute(
            shape,
            lambda *i: product(i[:-1], tir.floordiv(i[-1], BLOCK), tir.floormod(i[-1], BLOCK)),
            name=call.name,
        )
    # Whole vectors into a padded result; only its real columns are read on.
    blocks = int(weight.shape[0])
    whole = te.compute(
        (*shape[:-1], blocks, BLOCK), lambda *i: product(i[:-2], i[-2], i[-1]), name=f"{call.name}_whole"
    )
    return te.compute(
        shape,
        lambda *i: whole(*i[:-1], tir.floordiv(i[-1], BLOCK), tir.floormod(i[-1], BLOCK)),
        name=call.name,
    )


def _pattern(x: Any, weight: Any, bias: Any) -> Any:
    y = op.dense(x, weight)
    y = either(op.bias_add(y, bias), y)
    return either(op.relu(y), op.gelu(y), y)


dense = Composite(
    "dense",
    _pattern,
    compute={"dense": packed_dense},
    pack={"weight": pack_weight},
    why="the bias and the activation are applied while the tile is in registers",
    cases=(
        Case(lambda x, weight: op.dense(x, weight), x=(3, 5), weight=(4, 5), constants=["weight"]),
        Case(
            lambda x, weight, bias: op.relu(op.bias_add(op.dense(x, weight), bias)),
            x=(7, 33), weight=(17, 33), bias=(17,), constants=["weight", "bias"],
        ),
        Case(
            lambda x, weight, bias: op.gelu(op.bias_add(op.dense(x, weight), bias, axis=-1)),
            x=(2, 19, 64), weight=(48, 64), bias=(48,), constants=["weight", "bias"],
        ),
        Case(lambda x, weight: op.relu(op.dense(x, weight)), x=(1, 1024), weight=(1000, 1024), constants=["weight"]),
        Case(lambda x, weight: op.dense(x, weight), x=(128, 768), weight=(768, 768)),
    ),
)  # fmt: skip


def _mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    hidden = op.gelu(op.bias_add(op.dense(x, w1), b1))
    return op.bias_add(op.dense(hidden, w2), b2)


def _mlp_reference(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    from math import erf

    hidden = x @ w1.T + b1
    return hidden * (1 + np.vectorize(erf)(hidden / np.sqrt(2))) / 2 @ w2.T + b2


dense_gelu_dense = Composite(
    "dense_gelu_dense",
    _mlp,
    reference=_mlp_reference,
    compute={"dense": packed_dense},
    pack={"w1": pack_weight, "w2": pack_weight},
    why="the hidden activations never leave the kernel",
    cases=(
        Case(x=(5, 24), w1=(40, 24), b1=(40,), w2=(9, 40), b2=(9,)),
        Case(x=(128, 768), w1=(3072, 768), b1=(3072,), w2=(768, 3072), b2=(768,), constants=["w1", "b1", "w2", "b2"]),
    ),
)
