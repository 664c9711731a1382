"""dense of levels (+ bias): DequantizeLinear, MatMul or Gemm, and QuantizeLinear of a quantised
model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...language.case import Case
from ...language.composite import Composite
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ...tvm.types import Shape
from ..kernels.rows.quantized import QUANTIZED_DENSE
from .dense import check_bias
from .levels import check_levels
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(
    x: Node, x_scale: Node, x_zero: Node, weight: Node, w_scale: Node, w_zero: Node, bias: Node
) -> Node:
    rows = op.dequantize(x, x_scale, x_zero)
    y = op.dense(rows, op.dequantize(weight, w_scale, w_zero))
    return either(op.bias_add(y, bias), y)


def _check(match: Match) -> None:
    check_sizes(match)
    check_bias(match)
    check_levels(match)


def _dense(zero: int = 0) -> Program:
    def program(x: Node, weight: Node, w_scale: Node, bias: Node) -> Node:
        rows, levels = op.dequantize(x, 2.0**-5, 7), op.dequantize(weight, w_scale, zero, axis=0)
        return op.bias_add(op.dense(rows, levels), bias, axis=-1)

    return program


def _plain(x: Node, weight: Node) -> Node:
    return op.dense(op.dequantize(x, 2.0**-4, -3), op.dequantize(weight, 2.0**-6, 0))


def _of(program: Program, x: Shape, units: int, dtype: str = "uint8", weight: str = "int8") -> Case:
    return Case(
        program, x=(x, dtype), weight=((units, x[-1]), weight), w_scale=(units,), bias=(units,),
        constants=["weight", "w_scale", "bias"],
    )  # fmt: skip


dense_int8 = Composite(
    "dense_int8",
    _pattern,
    check=_check,
    kernel=QUANTIZED_DENSE,
    epilogue=True,
    why="bytes are multiplied several at a time, and the int32 sums never leave the registers",
    cases=(
        _of(_dense(), (7, 33), 17),
        _of(_dense(), (2, 19, 64), 48, "int8"),
        _of(_dense(), (1, 1024), 1000),
        _of(_dense(128), (5, 37), 20, weight="uint8"),
        Case(_plain, x=((128, 768), "int8"), weight=((768, 768), "int8"), constants=["weight"]),
    ),
)
