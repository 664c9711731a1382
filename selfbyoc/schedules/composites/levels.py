"""What composites of levels take: bytes, their scales and zero points."""

from __future__ import annotations

import math

from ...graph import Value
from ...language.composite import require
from ...language.match.match import Match
from ..kernels.words import BYTE, WIDE, most_products


def _is_one(value: Value) -> bool:
    return math.prod(value.shape) == 1


def check_levels(match: Match) -> None:
    """Bytes with one scale and zero point of the data, and weights that count from their middle; or
    from 0 in int16, as partitioning makes them of others, of -255 to 255.
    """
    require(match.x.dtype in BYTE, f"only int8 and uint8 are multiplied, found {match.x.type}")
    weight = match.weight
    is_wide = weight.dtype == WIDE and weight.is_constant
    require(
        weight.dtype in BYTE or is_wide, f"only int8 and uint8 are multiplied, found {weight.type}"
    )
    for name in ("x_scale", "x_zero"):
        value = getattr(match, name)
        require(_is_one(value), f"{name} has {value.type}, not one element")
    for call in match.of("dequantize"):
        levels, scale = call.inputs[:2]
        axis = call.attrs["axis"] % max(1, levels.ndim)
        require(_is_one(scale) or axis == 0, f"{call.name}: scales lie along axis {axis}, not 0")
    middle = 128 if weight.dtype == "uint8" else 0
    require(
        match.w_zero.scalar == middle,
        f"the weight's zero point is not {middle}, from which {weight.dtype} is moved",
    )
    check_sums(weight)
    result = match.root.outputs[0].dtype
    require(result == "float32", f"levels are dequantised to {result}, not float32")


def check_sums(weight: Value) -> None:
    """As many products as int32 holds."""
    terms = math.prod(weight.shape[1:])
    require(
        terms <= most_products(weight.dtype), f"sums of {terms} products of bytes may leave int32"
    )
