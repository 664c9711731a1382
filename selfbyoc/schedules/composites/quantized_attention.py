"""Attention of levels: DequantizeLinear before queries, keys and values, QuantizeLinear and
DequantizeLinear after the softmax, and after what is before it, as a quantiser writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...graph import OpCall, Value
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.decisions import is_symbolic
from ...language.growing import elementwise
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr, Shape
from ..kernels.attention.plan import FEW_QUERIES, plan_of_levels
from ..kernels.attention.quantized import attention_of_levels
from ..kernels.attention.schedule import schedule
from ..kernels.words import BYTE
from .attention import check_softmax
from .quantized_products import check_sides, check_terms, check_zero, perhaps_turned

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(
    q: Node, q_scale: Node, q_zero: Node,
    k: Node, k_scale: Node, k_zero: Node,
    v: Node, v_scale: Node, v_zero: Node,
    power_scale: Node, power_zero: Node, p_scale: Node, p_zero: Node,
) -> Node:  # fmt: skip
    queries = op.dequantize(perhaps_turned(q), q_scale, q_zero)
    keys = op.dequantize(perhaps_turned(k), k_scale, k_zero)
    values = op.dequantize(perhaps_turned(v), v_scale, v_zero)
    scores = elementwise(op.batch_matmul(queries, keys), name="step")
    levels = op.quantize(op.softmax(scores), power_scale, power_zero)
    return op.batch_matmul(op.dequantize(levels, p_scale, p_zero), values)


def _check(match: Match) -> None:
    check_softmax(match)
    check_sides(match, "q", "k", "v")
    products = match.own.of("batch_matmul")
    for product in products:
        check_terms(product)
    scores = products[0].outputs[0]
    queries = scores.shape[-2]
    few = not is_symbolic(queries) and queries <= FEW_QUERIES
    require(not few, f"{queries} queries fill no vector, and are faster by products alone")
    _check_levels(match)
    _check_steps(match, scores)


def _check_levels(match: Match) -> None:
    """What the second product reads are levels that are bytes."""
    powers = match.op("softmax").outputs[0]
    levels = next(c for c in match.own.of("quantize") if c.inputs[0] is powers).outputs[0]
    require(levels.dtype in BYTE, f"only int8 and uint8 are multiplied, found {levels.type}")
    check_zero(levels.dtype, match.p_zero)


def _check_steps(match: Match, scores: Value) -> None:
    """The ops between the first product and the softmax come one after the other."""
    made: dict[Value, OpCall] = {c.outputs[0]: c for c in match.own.ops}
    last = match.op("softmax").inputs[0]
    while last is not scores:
        call = made[last]
        own = [value for value in call.inputs if value in made]
        require(len(own) == 1, f"{call.name} reads {len(own)} values that are made of scores")
        (last,) = own


def _rounded(x: Node, scale: float, zero: int = 128) -> Node:
    levels = op.quantize(x, scale, zero, out_dtype="uint8")
    return op.dequantize(levels, scale, zero)


def _of_scores(scores: Node, v: Node) -> Node:
    powers = _rounded(op.softmax(scores), 2.0**-8, 0)
    return op.batch_matmul(powers, op.dequantize(v, 2.0**-5, 131))


def _product(q: Node, k: Node, **attrs: Attr) -> Node:
    queries, keys = op.dequantize(q, 2.0**-6, 126), op.dequantize(k, 2.0**-6, 119)
    return op.batch_matmul(queries, keys, **attrs)


def _scaled(q: Node, k: Node, v: Node) -> Node:
    scores = op.multiply(_rounded(_product(q, k), 0.25, 134), 0.25)
    return _of_scores(_rounded(scores, 2.0**-4), v)


def _masked(q: Node, k: Node, v: Node, mask: Node) -> Node:
    scores = op.divide(_rounded(_product(q, k, transpose_b=True), 0.25), 4.0)
    return _of_scores(_rounded(op.add(_rounded(scores, 2.0**-4), mask), 2.0**-4, 100), v)


def _turned(q: Node, k: Node, v: Node) -> Node:
    q, v = (op.transpose(levels, axes=(0, 2, 1)) for levels in (q, v))
    return _of_scores(_rounded(_product(q, k, transpose_b=True), 0.125), v)


def _signed(q: Node, k: Node, v: Node) -> Node:
    queries, keys = op.dequantize(q, 2.0**-6, -3), op.dequantize(k, 2.0**-6, 9)
    scores = op.batch_matmul(queries, keys, transpose_a=True)
    powers = op.quantize(op.softmax(scores), 2.0**-8, -128, out_dtype="int8")
    values = op.dequantize(v, 2.0**-5, 0)
    return op.batch_matmul(op.dequantize(powers, 2.0**-8, -128), values, transpose_b=True)


def _of(
    program: Program, name: str, q: Shape, k: Shape, v: Shape, dtype: str = "uint8", **others: Shape
) -> Case:
    generations = ("relax",) if len(q) > 3 else ("relax", "relay")
    sides: dict[str, Any] = {"q": (q, dtype), "k": (k, dtype), "v": (v, dtype), **others}
    return Case(program, name=name, generations=generations, **sides)


attention_int8 = Composite(
    "attention_int8",
    _pattern,
    check=_check,
    kernel=Kernel(plan_of_levels, attention_of_levels, schedule),
    epilogue=True,
    why="the scores of a block of queries stay in the cache",
    cases=(
        _of(_scaled, "scaled", (12, 128, 32), (12, 32, 128), (12, 128, 32)),
        _of(_scaled, "odd-sizes", (3, 37, 19), (3, 19, 45), (3, 45, 21)),
        _of(_masked, "masked", (2, 33, 64), (2, 70, 64), (2, 70, 64), mask=(2, 1, 70)),
        _of(_masked, "long-rows", (2, 21, 26), (2, 99, 26), (2, 99, 40), mask=(1, 21, 99)),
        _of(_turned, "turned", (3, 24, 30), (3, 50, 24), (3, 32, 50)),
        _of(_signed, "signed", (2, 20, 33), (2, 20, 48), (2, 17, 48), "int8"),
        _of(_scaled, "heads", (1, 4, 40, 32), (1, 4, 32, 40), (1, 4, 40, 33)),
    ),
)  # fmt: skip
