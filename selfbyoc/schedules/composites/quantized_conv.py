"""conv2d of levels (+ bias): what a quantised model writes as DequantizeLinear, Conv and
QuantizeLinear.

Sums are of bytes, exact in int32. What comes after them, as an activation, the next QuantizeLinear
or a residual of levels, joins the kernel as elementwise ops do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.pattern import either, op
from ..kernels.conv.quantized import QUANTIZED_CONV
from ..kernels.conv.quantized_plan import is_of_words
from .levels import check_levels
from .quantized import NCHW
from .quantized_cases import LEVELS
from .sizes import check_rows, check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node

EXACT = 1 << 24  # integers up to it are floats


def _pattern(
    x: Node, x_scale: Node, x_zero: Node, weight: Node, w_scale: Node, w_zero: Node, bias: Node
) -> Node:
    image = op.dequantize(x, x_scale, x_zero)
    y = op.conv2d(image, op.dequantize(weight, w_scale, w_zero), **NCHW)
    return either(op.bias_add(y, bias), y)


def _check(match: Match) -> None:
    check_sizes(match)
    check_levels(match)
    weight = match.weight.shape
    terms = weight[1] * weight[2] * weight[3]
    require(
        is_of_words(weight) or terms * 255 * 255 <= EXACT,
        f"sums of {terms} products are no exact floats",
    )


conv2d_int8 = Composite(
    "conv2d_int8",
    _pattern,
    check=_check,
    kernel=QUANTIZED_CONV,
    epilogue=check_rows,
    why="bytes are multiplied several at a time, and the int32 sums never leave the registers",
    cases=LEVELS,
)
