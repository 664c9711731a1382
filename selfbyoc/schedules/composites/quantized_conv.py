"""conv2d of levels (+ bias): what a quantised model writes as DequantizeLinear, Conv and
QuantizeLinear.

Sums are of bytes, exact in int32. What comes after them, as an activation, the next QuantizeLinear
or a residual of levels, joins the kernel as elementwise ops do.
"""

from __future__ import annotations

import math
from typing import Any

from ...language.composite import Composite, require
from ...language.pattern import either, op
from ..kernels.conv.quantized import QUANTIZED_CONV, is_of_words
from ..kernels.words import BYTE
from .quantized import NCHW
from .quantized_cases import LEVELS
from .sizes import check_rows, check_sizes

EXACT = 1 << 24  # integers up to it are floats


def _pattern(
    x: Any, x_scale: Any, x_zero: Any, weight: Any, w_scale: Any, w_zero: Any, bias: Any
) -> Any:
    image = op.dequantize(x, x_scale, x_zero)
    y = op.conv2d(image, op.dequantize(weight, w_scale, w_zero), **NCHW)
    return either(op.bias_add(y, bias), y)


def _is_one(value: Any) -> bool:
    return math.prod(value.shape) == 1


def check_levels(match: Any) -> None:
    """Bytes with one scale and zero point of the data, and weights that count from their middle."""
    for name in ("x", "weight"):
        value = getattr(match, name)
        require(value.dtype in BYTE, f"only int8 and uint8 are multiplied, found {value.type}")
    for name in ("x_scale", "x_zero"):
        value = getattr(match, name)
        require(_is_one(value), f"{name} has {value.type}, not one element")
    for call in match.of("dequantize"):
        levels, scale = call.inputs[:2]
        axis = call.attrs["axis"] % max(1, levels.ndim)
        require(_is_one(scale) or axis == 0, f"{call.name}: scales lie along axis {axis}, not 0")
    middle = 128 if match.weight.dtype == "uint8" else 0
    require(
        match.w_zero.scalar == middle,
        f"the weight's zero point is not {middle}, from which {match.weight.dtype} is moved",
    )
    result = match.root.outputs[0].dtype
    require(result == "float32", f"levels are dequantised to {result}, not float32")


def _check(match: Any) -> None:
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
    why="bytes are multiplied four at a time, and the int32 sums never leave the registers",
    cases=LEVELS,
)
