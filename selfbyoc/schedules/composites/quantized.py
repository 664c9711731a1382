"""int8 conv2d + bias + (shift | requantize | scale and round) + clip + cast.

Accelerators such as VTA take an int8 convolution only with what brings its int32 sums back to
8 bits. Written out alone, the sums cost four times the memory of the image; here they never leave
the registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.pattern import either, op
from ..kernels.conv.narrowed import NARROWED_CONV
from .quantized_cases import ANY_LAYOUT, NARROWED
from .sizes import check_rows, check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node

NCHW: dict[str, Any] = {"data_layout": "NCHW", "kernel_layout": "OIHW", "out_layout": "NCHW"}
NARROW = ("int8", "uint8")


def _narrowed(
    y: Node, rounding: Node, shift: Node, scale: Node, multiplier: Node, by: Node
) -> Node:
    """int32 sums brought back to 8 bits, in one of the ways that quantisers write."""
    shifted = either(op.right_shift(op.add(y, rounding), shift), op.right_shift(y, shift))
    wide = op.cast(y)
    rounded = op.round(either(op.multiply(wide, scale), op.divide(wide, scale)))
    fixed = either(op.requantize(y), op.requantize_by_channel(y, multiplier, by))
    return either(op.cast(op.clip(either(shifted, rounded, fixed))), op.clip(fixed), fixed)


def _pattern(
    x: Node, weight: Node, bias: Node, rounding: Node, shift: Node, scale: Node, multiplier: Node,
    by: Node,
) -> Node:  # fmt: skip
    return _chain(op.conv2d(x, weight, **NCHW), bias, rounding, shift, scale, multiplier, by)


def _other_layouts(
    x: Node, weight: Node, bias: Node, rounding: Node, shift: Node, scale: Node, multiplier: Node,
    by: Node,
) -> Node:  # fmt: skip
    return _chain(op.conv2d(x, weight), bias, rounding, shift, scale, multiplier, by)


def _chain(sums: Node, bias: Node, *factors: Node) -> Node:
    scaled = op.add(op.fixed_point_multiply(sums), bias)  # to the scale of the bias
    sums = either(op.bias_add(sums, bias), scaled, sums)
    return _narrowed(either(op.relu(sums), op.clip(sums), sums), *factors)


def _check(match: Match) -> None:
    check_sizes(match)
    conv = match.op("conv2d")
    for value in conv.inputs:
        require(value.dtype in NARROW, f"only int8 and uint8 are narrowed, found {value.type}")
    require(conv.outputs[0].dtype == "int32", f"sums are int32, found {conv.outputs[0].dtype}")
    require(
        match.root.outputs[0].dtype in NARROW,
        f"the result is {match.root.outputs[0].dtype}, not 8 bits",
    )
    for name in ("rounding", "shift", "scale"):
        value = getattr(match, name)
        require(value is None or value.scalar is not None, f"{name} is no constant of one element")
    require(match.shift is None or 0 <= match.shift.scalar < 32, "the shift is not within 0 to 31")


conv2d_narrowed = Composite(
    "conv2d_narrowed",
    _pattern,
    check=_check,
    kernel=NARROWED_CONV,
    epilogue=check_rows,
    why="the int32 sums never leave the registers",
    cases=NARROWED,
)

conv2d_narrowed_any_layout = Composite(
    "conv2d_narrowed_any_layout",
    _other_layouts,
    check=_check,
    why="the int32 sums never leave the registers",
    cases=ANY_LAYOUT,
)
