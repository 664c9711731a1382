"""batch_matmul of levels that are both computed: DequantizeLinear before both sides, MatMul, and
QuantizeLinear, as in attention of a quantised model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...graph import OpCall, Value
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ...ops.fixed_point import MOST_OF_TWO
from ...tvm.types import Attr, Shape
from ..kernels.matmul.quantized import QUANTIZED_MATMUL
from ..kernels.words import BYTE
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node

_FARTHEST = 255  # a level from its zero point


def is_swap(axes: Sequence[int]) -> bool:
    """Whether a transpose is of the last two axes alone."""
    count = len(axes)
    return [*axes] == [*range(count - 2), count - 1, count - 2] and count > 1


def perhaps_turned(levels: Node) -> Node:
    """As importers write a side that a product has transposed."""
    return either(op.transpose(levels, axes=is_swap), levels)


def _pattern(x: Node, x_scale: Node, x_zero: Node, y: Node, y_scale: Node, y_zero: Node) -> Node:
    left = op.dequantize(perhaps_turned(x), x_scale, x_zero)
    right = op.dequantize(perhaps_turned(y), y_scale, y_zero)
    return either(op.batch_matmul(left, right), op.dense(left, right))


def _check(match: Match) -> None:
    check_sizes(match)
    check_sides(match, "x", "y")
    check_terms(match.own.root)


def check_sides(match: Match, *names: str) -> None:
    """Both sides of a product are levels with one scale and one zero point."""
    for name in names:
        levels = getattr(match, name)
        require(levels.dtype in BYTE, f"only int8 and uint8 are multiplied, found {levels.type}")
        check_zero(levels.dtype, getattr(match, f"{name}_zero"))
    for call in (*match.own.of("dequantize"), *match.own.of("quantize")):
        for factor in call.inputs[1:]:
            axis, is_one = call.attrs["axis"], math.prod(factor.shape) == 1
            require(is_one, f"{call.name}: {factor.type} lies along axis {axis}, not one element")


def check_terms(product: OpCall) -> None:
    """As many products of levels as int32 holds, then in float32."""
    is_turned = product.kind == "batch_matmul" and product.attrs["transpose_a"]
    terms = product.inputs[0].shape[-2 if is_turned else -1]
    require(terms <= MOST_OF_TWO, f"sums of {terms} products of bytes may leave int32")
    result = product.outputs[0].dtype
    require(result == "float32", f"levels are dequantised to {result}, not float32")


def check_zero(dtype: str, zero: Value) -> None:
    """A zero point that is known is a level."""
    low = -128 if dtype == "int8" else 0
    point = zero.scalar
    require(
        point is None or low <= point <= low + _FARTHEST,
        f"{zero.name} is {point}, which is no level of {dtype}",
    )


def _product(zeros: tuple[int, int] = (7, 120), **attrs: Attr) -> Program:
    def program(x: Node, y: Node) -> Node:
        left, right = op.dequantize(x, 2.0**-5, zeros[0]), op.dequantize(y, 2.0**-4, zeros[1])
        return op.batch_matmul(left, right, **attrs)

    return program


def _turned_levels(x: Node, y: Node) -> Node:
    x, y = (op.transpose(levels, axes=(0, 2, 1)) for levels in (x, y))
    right = op.dequantize(y, 2.0**-4, 11)
    return op.batch_matmul(op.dequantize(x, 2.0**-5, 3), right, transpose_b=True)


def _of_matrices(x: Node, y: Node) -> Node:
    right = op.dequantize(op.transpose(y, axes=(1, 0)), 2.0**-4, 11)
    return op.dense(op.dequantize(x, 2.0**-5, 3), right)


def _by_rows(x: Node, y: Node) -> Node:
    return op.dense(op.dequantize(x, 2.0**-5, 3), op.dequantize(y, 2.0**-4, 11))


def _of(program: Program, name: str, x: Shape, y: Shape, *dtypes: str) -> Case:
    left, right = dtypes or ("uint8", "uint8")
    return Case(program, name=name, x=(x, left), y=(y, right))


batch_matmul_int8 = Composite(
    "batch_matmul_int8",
    _pattern,
    check=_check,
    kernel=QUANTIZED_MATMUL,
    epilogue=True,
    why="bytes are multiplied two at a time, and the int32 sums never leave the registers",
    cases=(
        _of(_product(), "heads", (12, 128, 32), (12, 32, 128)),
        _of(_product(), "odd-depth", (3, 37, 19), (3, 19, 45)),
        _of(_product(transpose_b=True), "turned", (4, 33, 64), (4, 70, 64)),
        _of(_product((-3, 5)), "signed", (2, 20, 33), (2, 33, 30), "int8", "int8"),
        _of(_product((0, -31)), "even-depth", (2, 9, 50), (2, 50, 17), "uint8", "int8"),
        _of(
            _product(transpose_a=True, transpose_b=True), "both-turned",
            (2, 31, 13), (2, 48, 31), "int8", "uint8",
        ),
        _of(_turned_levels, "turned-levels", (3, 30, 21), (3, 30, 26)),
        _of(_of_matrices, "matrices", (29, 47), (47, 35)),
        _of(_by_rows, "by-rows", (2, 5, 40), (23, 40), "uint8", "int8"),
    ),
)  # fmt: skip
