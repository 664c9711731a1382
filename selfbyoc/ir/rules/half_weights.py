"""Rules of canonicalisation: a convolution's weight of halves, which its kernel makes floats
of; and what says that a model has a product of two computed sides in halves.
"""

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
    if weight.dtype not in HALVES or rw.producer(weight) is not None or not rw.read_once(value):
        return None
    floats = replace(
        value, name=weight.name, is_constant=weight.is_constant, held=weight.dtype,
        as_held=wide.kind == "half_weight",
    )  # fmt: skip
    made = replace(wide, outputs=(floats,), sources=())
    inputs = (call.inputs[0], floats, *call.inputs[2:])
    return [made, absorb(call, [wide], inputs=inputs)], [wide]


def half_factor(rw: Rewriter, call: OpCall) -> Rewrite | None:
    """batch_matmul(x, half_factor(y)): what a product may round its sides to is an attribute of it,
    so that rules and patterns see the sides themselves.
    """
    factor = rw.producer(call.inputs[1], "half_factor") if call.kind == "batch_matmul" else None
    if factor is None or not rw.read_once(call.inputs[1]):
        return None
    inputs, attrs = (call.inputs[0], *factor.inputs), {**call.attrs, "may_round_to": "bfloat16"}
    return [absorb(call, [factor], inputs=inputs, attrs=attrs)], [factor]
