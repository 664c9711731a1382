"""Relay: what relay.quantize writes for a scale that is no power of two, as qnn.requantize.

    cast(clip(fixed_point_multiply(cast(x, int64), multiplier, shift)), int32)
      ->  clip(qnn.requantize(x, out_dtype="int32"))

Both are the same fixed point of 64 bits, halves up. The annotations around it stop TVM from fusing,
and mean nothing else.
"""

from __future__ import annotations

import numpy as np

from ...ir.rewriting import Editor, Made, dtype
from ...ops.fixed_point import fixed_point
from ...tvm.types import Expr

_ENDS = (-(1 << 31), (1 << 31) - 1)  # what a requantize to int32 limits its result to


def multipliers_as_scales(made: Made, to: Editor) -> Expr | None:
    """Fixed point of int32 sums, limited within int32."""
    if made.name == "annotation.stop_fusion":
        return made.args[0]
    if made.name != "cast" or str(made.raw["dtype"]) != "int32":
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
    if dtype(to, sums) != "int32" or str(wide.raw["dtype"]) != "int64":
        return None
    return to.again(clip, [_requantized(sums, scale, to)])


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
