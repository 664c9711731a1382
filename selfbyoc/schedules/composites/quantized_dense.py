"""Quantised layer_norm + dense: rows are normalised, rounded to int8 and multiplied as integers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...codegen.info.ops import Ops
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.pattern import either, op
from ...ops.mathfn import clamp
from ...ops.rounded import round_away, round_even
from ...tvm import te, tir
from ...tvm.types import PrimExpr, Tensor
from ..kernels.rows.compute import Dense, in_tiles
from ..kernels.rows.quantized import (
    QuantizedNormalPlan,
    of_integers,
    pack,
    plan_normal,
    sums_of_words,
)
from ..kernels.rows.rowwise import Rowwise, layer_norm
from ..kernels.rows.schedule import schedule_normal
from ..kernels.words import Words, counted
from .dense import check_bias
from .levels import check_sums
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(
    x: Node, in_scale: Node, gamma: Node, beta: Node, out_scale: Node, weight: Node, bias: Node
) -> Node:
    wide = op.cast(x)
    scaled = either(op.multiply(wide, in_scale), op.divide(wide, in_scale), wide)
    normal = op.layer_norm(scaled, gamma, beta)
    levels = op.round(either(op.multiply(normal, out_scale), op.divide(normal, out_scale)))
    sums = op.dense(op.cast(op.clip(levels)), weight)
    return either(op.bias_add(sums, bias), sums)


def _check(match: Match) -> None:
    check_sizes(match)
    check_bias(match)
    axis, ndim = match.op("layer_norm").attrs["axis"], match.x.ndim
    require(axis in (-1, ndim - 1), f"layer_norm is over axis {axis}, not the last")
    wide, levels = match.of("cast")[0].outputs[0].dtype, match.of("cast")[1].outputs[0].dtype
    require(wide == "float32", f"the rows are normalised in {wide}, not float32")
    require(
        levels == match.weight.dtype == "int8",
        f"int8 is multiplied, not {levels} and {match.weight.dtype}",
    )
    check_sums(match.weight)
    require(
        match.root.outputs[0].dtype == "int32",
        f"sums are int32, found {match.root.outputs[0].dtype}",
    )
    limits = match.op("clip").attrs
    require(
        limits["a_min"] >= -128 and limits["a_max"] <= 127, "the levels are not clipped to int8"
    )
    for name in ("in_scale", "out_scale"):
        value = getattr(match, name)
        require(value is None or value.scalar is not None, f"{name} is no constant of one element")


def _scaled(value: PrimExpr, kind: str, scale: Tensor) -> PrimExpr:
    number = scale(*(0 for _ in scale.shape))
    return value * number if kind == "multiply" else tir.div(value, number)


def _level(value: PrimExpr, ops: Ops) -> PrimExpr:
    """The level that a value is rounded to."""
    even = ops.round.attrs["ties"] == "even"
    value = round_even(value) if even else round_away(value)
    # The cast to int8 cuts the fraction of a limit off: here it is cut off before.
    limits = (math.trunc(ops.clip.attrs[name]) for name in ("a_min", "a_max"))
    low, high = (tir.const(limit, "float32") for limit in limits)
    return clamp(value, low, high).astype("int8")


def _compute(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    out_scale: Tensor,
    weight: Tensor,
    in_scale: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    ops: Ops,
    plan: QuantizedNormalPlan,
) -> Dense:
    rows, out = plan.floats.rows, ops.dense.outputs[0]
    tiled = (*rows.tiles, rows.height, int(x.shape[-1]))
    kinds = [view.kind for view in ops]
    at = kinds.index("layer_norm")

    level = in_tiles(x, rows)

    def read(*i: PrimExpr) -> PrimExpr:
        wide = level(*i).astype("float32")
        return wide if in_scale is None else _scaled(wide, kinds[at - 1], in_scale)

    epsilon = ops.layer_norm.attrs["epsilon"]
    normal, before = layer_norm(read, gamma, beta, tiled, epsilon, plan.floats.normal)
    levels = te.compute(
        tiled,
        lambda *i: _level(_scaled(normal(*i), kinds[at + 1], out_scale), ops),
        name="normalised",
    )
    words = Words(levels, len(tiled) - 1, plan.products).stage()
    zero = counted(tir.const(0, "int32"), "int8", plan.products)
    found = sums_of_words(words, weight, zero, plan.dense)
    stored = of_integers(found, bias, out[0][-1], plan.dense.product)
    return Dense(found[0], *stored, Rowwise((levels, *before), words))


def _byte(y: Node) -> Node:
    return op.cast(op.clip(op.round(y), a_min=-128, a_max=127), dtype="int8")


# Levels of +-16: hardly a value then lies so near a half that float32 rounds it to another level
# than float64, and the cases can be compared exactly.
def _plain(x: Node, gamma: Node, beta: Node, weight: Node) -> Node:
    normal = op.layer_norm(op.multiply(op.cast(x, dtype="float32"), 0.05), gamma, beta)
    return op.dense(_byte(op.multiply(normal, 4.0)), weight, out_dtype="int32")


def _biased(x: Node, gamma: Node, beta: Node, weight: Node, bias: Node) -> Node:
    normal = op.layer_norm(op.cast(x, dtype="float32"), gamma, beta)
    sums = op.dense(_byte(op.divide(normal, 0.25)), weight, out_dtype="int32")
    return op.bias_add(sums, bias, axis=-1)


def _divided(x: Node, gamma: Node, beta: Node, weight: Node) -> Node:
    normal = op.layer_norm(op.divide(op.cast(x, dtype="float32"), 16.0), gamma, beta)
    return op.dense(_byte(op.multiply(normal, 4.0)), weight, out_dtype="int32")


def _integers(*rows: int, count: int, units: int) -> dict[str, Any]:
    return {
        "x": ((*rows, count), "int8"),
        "gamma": (count,),
        "beta": (count,),
        "weight": ((units, count), "int8"),
    }


_WEIGHTS = ("gamma", "beta", "weight")

layer_norm_dense_int8 = Composite(
    "layer_norm_dense_int8",
    _pattern,
    kernel=Kernel(
        plan_normal,
        _compute,
        lambda sch, stages, plan: schedule_normal(sch, stages, plan.floats),
        pack={"weight": lambda weight, plan: pack(weight, plan.dense)},
    ),
    check=_check,
    why="the quantised rows stay in the cache of the core that multiplies them",
    cases=(
        Case(_plain, **_integers(7, count=33, units=17)),
        Case(
            _biased, **_integers(2, 19, count=64, units=48), bias=((48,), "int32"),
            constants=[*_WEIGHTS, "bias"],
        ),
        Case(_divided, **_integers(3, count=26, units=21)),
        Case(_plain, **_integers(1, count=96, units=130), constants=_WEIGHTS),
        Case(_plain, **_integers(128, count=768, units=768), constants=_WEIGHTS),
    ),
)  # fmt: skip
