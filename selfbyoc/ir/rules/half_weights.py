"""Rule of canonicalisation: a convolution's weight of halves, which its kernel makes floats of."""

from __future__ import annotations

from dataclasses import replace

from ...graph import HALVES, OpCall
from ...ops.half_weights import WIDENS, reads_halves
from .rewriter import Rewrite, Rewriter, absorb


def half_weight(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """conv2d(x, cast(weight)): the cast is made up, so that how the weight is laid out decides
    whether it stays as it is.
    """
    if not reads_halves(call.kind, call.attrs):
        return None
    value = call.inputs[1]
    wide = rw.producer(value)
    if wide is None or not wide.sources or wide.kind not in WIDENS or value.dtype != "float32":
        return None
    (weight,) = wide.inputs
    if weight.dtype not in HALVES or rw.producer(weight) is not None or not rw.only_reader(value):
        return None
    floats = replace(
        value, name=weight.name, is_constant=weight.is_constant, held=weight.dtype,
        as_held=wide.kind == "half_weight",
    )  # fmt: skip
    made = replace(wide, outputs=(floats,), sources=())
    inputs = (call.inputs[0], floats, *call.inputs[2:])
    return [made, absorb(call, [wide], inputs=inputs)], [wide]
