"""Relay: what relay.quantize writes for a scale that is no power of two, as qnn.requantize.

    cast(clip(fixed_point_multiply(cast(x, int64), multiplier, shift)), int8)
      ->  cast(clip(qnn.requantize(x, out_dtype="int32")), int8)

Both are the same fixed point of 64 bits, halves up. The annotations around it stop TVM from fusing,
and mean nothing else.

Of levels without a cast Relay's type of a fixed point is theirs, and what TVM computes is int32,
which none of its builds runs: what the type says is written out.

    fixed_point_multiply(x)  ->  cast(fixed_point_multiply(cast(x, int32)), int8)
"""

from __future__ import annotations

import numpy as np

from ...ir.rewriting import Editor, Made, dtype
from ...ops.fixed_point import fixed_point
from ...tvm.types import Expr

_ENDS = (-(1 << 31), (1 << 31) - 1)  # what a requantize to int32 limits its result to
_LEVELS = ("int8", "uint8")
_NARROW = (*_LEVELS, "int32")  # what a requantize reads, and 64 bits are cast to


def multipliers_as_scales(made: Made, to: Editor) -> Expr | None:
    """Fixed point of levels or of int32 sums, limited within int32."""
    if made.name == "annotation.stop_fusion":
        return made.args[0]
    if made.name == "fixed_point_multiply":
        return _as_typed(made, to)
    if made.name != "cast" or str(made.raw["dtype"]) not in _NARROW:
        return None
    clip = to.made(made.args[0])
    if clip is None or clip.name != "clip":
        return None
    product = to.made(clip.args[0])
    if product is None or product.name != "fixed_point_multiply":
        return None
    wide, scale = to.made(product.args[0]), _scale(product)
    within = _ENDS[0] <= clip.raw["a_min"] and clip.raw["a_max"] <= _ENDS[1]
    if wide is None or wide.name != "cast" or scale is None or not within:
        return None
    (sums,) = wide.args
    if dtype(to, sums) not in _NARROW or str(wide.raw["dtype"]) != "int64":
        return None
    limited = to.again(clip, [_requantized(sums, scale, to)])
    return limited if made.raw["dtype"] == "int32" else to.again(made, [limited])


def _as_typed(product: Made, to: Editor) -> Expr | None:
    """A fixed point of levels, in int32 and back."""
    levels = dtype(to, product.given[0])
    if levels not in _LEVELS:
        return None
    wide = to.emit("cast", product.args[0], dtype="int32")
    return to.emit("cast", to.again(product, [wide]), dtype=levels)


def _scale(product: Made) -> float | None:
    """A factor below one that float32 holds, and of which the same fixed point is made.

    None of a power of two, which 0.17's requantize rounds in 32 bits: large sums overflow.
    """
    multiplier, shift = int(product.raw["multiplier"]), int(product.raw["shift"])
    if multiplier <= 1 << 30 or shift > 0:
        return None
    scale = float(np.float32(multiplier * 2.0 ** (shift - 31)))
    return scale if fixed_point(scale) == (multiplier, 31 - shift) else None


def _requantized(sums: Expr, scale: float, to: Editor) -> Expr:
    zero, one = (to.constant(np.zeros((), "int32")), to.constant(np.ones((), "float32")))
    return to.call(
        "qnn.requantize", sums, to.constant(np.array(scale, "float32")), zero, one, zero,
        rounding="UPWARD", compute_dtype="int64", out_dtype="int32",
    )  # fmt: skip
