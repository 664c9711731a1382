"""Attention of levels as te.compute: the stages of floats, with products of words of two levels.

A score is scaled, and what the model computes of it follows in floats: quantised and dequantised
again, masked. A power becomes a level where the second product reads it. Everything is computed as
the two products and the softmax compute it alone, each by its own kernel, so that each level is the
same; only partial sums of a row of powers need stages of their own for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ....codegen.elementwise import applied
from ....codegen.info.ops import Ops, OpView
from ....ops.softmax import Softmax
from ....tvm import te, tir
from ....tvm.own_ops import PAIRS, dot
from ....tvm.types import PrimExpr, Tensor
from ..pairs import word_along
from ..words import only
from .compute import BlockStages, products_of, queries_of, result_of, scores_of, weighted_of
from .forms import BlockPlan, turned
from .masks import in_blocks
from .operands import Read, rows_of
from .softmax import SoftmaxStages, softmax_of

_TIMES = partial(dot, PAIRS)
_OF_OPERANDS = ("q_scale", "k_scale", "v_scale")


@dataclass(frozen=True)
class Levels:
    """An operand of a product: levels less their zero point, and their scale."""

    read: Read  # (batch ..., row, column) -> int32
    scale: PrimExpr


def attention_of_levels(*, ops: Ops, plan: BlockPlan, **given: Tensor) -> BlockStages:
    """The whole composite, of its arguments and of `step_0`, `step_1`, ..., which the ops between
    the scores and their softmax read.
    """
    queries, keys, values = (_operand(name, turned(ops)[name], given) for name in "qkv")
    words, read_keys = _keys(keys.read, plan)
    of_queries = _queries(queries.read, plan)
    products = products_of(of_queries, read_keys, plan, _TIMES)
    scored = in_blocks(_scored(queries.scale * keys.scale, ops, given), plan)
    scores = scores_of(products, scored)
    parts = Softmax(ops.softmax.attrs.get("guarded", False))
    soft = softmax_of(scores, parts, plan)
    levels = _levels(soft, parts, ops, given, plan)
    packed = _values(values.read, plan)
    scale = only(given["p_scale"]) * values.scale
    weighted, normalised = weighted_of(
        levels, packed, lambda total, *_: total.astype("float32") * scale, plan, _TIMES
    )
    return BlockStages(
        words, of_queries, products, scores, soft.peak, soft.power, soft.total, soft.inverse,
        packed, weighted, normalised, result_of(normalised, plan), soft.partial, levels,
    )  # fmt: skip


def _operand(name: str, is_turned: bool, given: Mapping[str, Tensor]) -> Levels:
    read = rows_of(given[name], False, is_turned)
    point = only(given[f"{name}_zero"]).astype("int32")
    scale = only(given[f"{name}_scale"])
    return Levels(lambda *i: read(*i).astype("int32") - point, scale)


def _scored(scale: PrimExpr, ops: Ops, given: Mapping[str, Tensor]) -> Read:
    """(sum, batch ..., query, key) -> what the softmax reads."""
    steps, _ = _chain(ops)

    def score(total: PrimExpr, *i: PrimExpr) -> PrimExpr:
        value = total.astype("float32") * scale
        for call in steps:
            value = applied(call, value, i, _others(call, ops, given))
        return value

    return score


def _chain(ops: Ops) -> tuple[list[OpView], OpView]:
    """The ops between the first product and the softmax, and the one that makes levels after it."""
    own = [
        call for call in ops
        if call.kind != "transpose" and ops.packing(call, 1).arg not in _OF_OPERANDS
    ]  # fmt: skip
    kinds = [call.kind for call in own]
    at = kinds.index("softmax")
    return own[kinds.index("batch_matmul") + 1 : at], own[at + 1]


def _others(call: OpView, ops: Ops, given: Mapping[str, Tensor]) -> Mapping[int, Tensor]:
    """What an op reads beside the scores."""
    names = {i: ops.packing(call, i).arg for i in range(len(call.inputs))}
    return {i: given[name] for i, name in names.items() if name}


def _queries(queries: Read, plan: BlockPlan) -> Tensor:
    """[block, word of d, lane]; where the depth is odd, the last one again."""

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(lambda d: queries(*i[:-1], d), i[-1], plan.shape.depth, None)

    return queries_of(word, plan)


def _keys(keys: Read, plan: BlockPlan) -> tuple[Tensor, Read]:
    """Words of keys, as these lie: [key, d] or [d, key]; and one of a key."""
    shape = plan.shape
    zero = tir.const(0, "int32")

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(lambda d: keys(*i[:-1], d), i[-1], shape.depth, zero)

    if shape.key_rows:
        made = te.compute((*shape.batch, shape.keys, plan.depth), word, name="keys")
        return made, made
    made = te.compute(
        (*shape.batch, plan.depth, shape.keys), lambda *i: word(*i[:-2], i[-1], i[-2]), name="keys"
    )
    return made, lambda *i: made(*i[:-2], i[-1], i[-2])


def _values(values: Read, plan: BlockPlan) -> Tensor:
    """[word of keys, column], in whole vectors; zero after the last key and column."""
    shape, zero = plan.shape, tir.const(0, "int32")

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(lambda n: values(*i[:-2], n, i[-1]), i[-2], shape.keys, zero)

    def element(*i: PrimExpr) -> PrimExpr:
        if plan.width == shape.columns:
            return word(*i)
        return tir.if_then_else(i[-1] < shape.columns, word(*i), zero)

    return te.compute((*shape.batch, plan.keys, plan.width), element, name="values")


def _levels(
    soft: SoftmaxStages, parts: Softmax, ops: Ops, given: Mapping[str, Tensor], plan: BlockPlan
) -> Tensor:
    """[block, word of keys, lane]; where the keys are odd, the last one again."""
    _, quantize = _chain(ops)
    others = {1: given["power_scale"], 2: given["power_zero"]}
    point = only(given["p_zero"]).astype("int32")

    def level(*i: PrimExpr) -> PrimExpr:
        power = parts.multiplied(soft.power(*i), soft.inverse(*i[:-2], i[-1]))
        return applied(quantize, power, i[:-1], others).astype("int32") - point

    def word(*i: PrimExpr) -> PrimExpr:
        return word_along(lambda n: level(*i[:-2], n, i[-1]), i[-2], plan.shape.keys, None)

    shape = (*plan.shape.batch, plan.blocks, plan.keys, plan.lanes)
    return te.compute(shape, word, name="levels")
