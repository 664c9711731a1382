"""Rounding to the nearest integer in vectors."""

from __future__ import annotations

from tvm.ir.op import register_op_attr

from . import GENERATION, tir
from .types import PrimExpr

# Neither TVM says that it can be vectorised, though LLVM rounds vectors: a loop with one rounding
# in it became scalar, all of it (0.17 and 0.27; docs/makers/tvm-notes.md).
register_op_attr(
    "tir.nearbyint" if GENERATION == "relay" else "tirx.nearbyint", "TVectorizable", True
)


def nearbyint(x: PrimExpr) -> PrimExpr:
    """To the nearest integer, halves to even."""
    return tir.nearbyint(x)
