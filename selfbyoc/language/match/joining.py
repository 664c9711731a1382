"""Which ops may be computed in the place of a kernel's element: their dtypes, shapes and length.

A kernel of floats takes ops of floats, with what makes levels of them and floats of levels; one
whose result is integers takes ops of integers, which are exact in any order.
"""

from __future__ import annotations

from ...graph import OpCall, Value
from ...ops.mathfn import SHORT_POWERS

DTYPE = "float32"
CONDITION = "bool"  # of a choice between floats; none is read or written by a kernel
LONG = ("log", "power")  # LLVM takes half a minute for log(1 + exp(x)) and its tanh in tiles
QUANTIZE, DEQUANTIZE = "quantize", "dequantize"  # between floats and levels of 8 bits
LEVELS = ("int8", "uint8")
INTEGERS = (*LEVELS, "int32", "int64")
OF_INTEGERS = (
    "add", "cast", "clip", "fixed_point_multiply", "less", "maximum", "minimum", "multiply",
    "relu", "requantize", "requantize_by_channel", "right_shift", "subtract", "where",
)  # fmt: skip
WIDENS = (DEQUANTIZE, "cast", "fixed_point_multiply", "requantize")  # what a residual is made by


def why_apart(call: OpCall, value: Value) -> str:
    """Why an op is not computed in place of a kernel's value; empty: it can be."""
    out = call.outputs[0]
    if call.kind in LONG and not _is_short(call):
        return f"{call.kind} is too long an expression to compile in every tile"
    if call.kind != "where" and any(v.dtype == CONDITION for v in call.inputs):
        return "it computes with a condition"  # of vectors, which 0.27 cannot cast
    if out.shape != value.shape:
        return f"it makes {out.type} of {value.type}"
    dtypes = {v.dtype for v in (*call.inputs, out) if v.scalar is None or v is out}
    if others := sorted(dtypes - _computed_with(call, value)):
        wanted = value.dtype if value.dtype in INTEGERS else DTYPE
        return f"it computes with {', '.join(others)}, the kernel with {wanted}"
    return ""


def ends_in(call: OpCall, value: Value) -> bool:
    """Whether a kernel may write what an op makes in place of its result: no condition, and no
    integers of more bytes.
    """
    dtype = call.outputs[0].dtype
    is_wider = value.dtype in LEVELS and dtype in INTEGERS and dtype not in LEVELS
    return dtype != CONDITION and not is_wider


def _computed_with(call: OpCall, value: Value) -> set[str]:
    if value.dtype in INTEGERS:
        return {*INTEGERS, CONDITION} if call.kind in OF_INTEGERS else set()
    return {DTYPE, CONDITION, *(LEVELS if call.kind in (QUANTIZE, DEQUANTIZE) else ())}


def _is_short(call: OpCall) -> bool:
    return call.kind == "power" and call.inputs[1].scalar in SHORT_POWERS
