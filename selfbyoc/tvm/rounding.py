"""Rounding to the nearest integer in vectors."""

from __future__ import annotations

from tvm.ir.op import register_op_attr

from . import GENERATION, dtype_of, tir, tvm
from .types import PrimExpr

# Neither TVM says that it can be vectorised, though LLVM rounds vectors: a loop with one rounding
# in it became scalar, all of it (0.17 and 0.27; docs/makers/tvm-notes.md).
register_op_attr(
    "tir.nearbyint" if GENERATION == "relay" else "tirx.nearbyint", "TVectorizable", True
)

if GENERATION == "relay":  # its rule, of level 10, prints `nearbyint`, which OpenCL's C has not
    tvm.ir.op.register_intrin_lowering(
        "tir.nearbyint",
        "opencl",
        f=lambda call: tir.call_pure_extern(dtype_of(call), "rint", *call.args),
        level=11,
    )


def nearbyint(x: PrimExpr) -> PrimExpr:
    """To the nearest integer, halves to even."""
    return tir.nearbyint(x)
