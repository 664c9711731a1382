"""Rule of canonicalisation: a convolution's weight of halves, which its kernel makes floats of."""

from __future__ import annotations

from dataclasses import replace

from ...graph import HALVES, OpCall
from ...tvm import GENERATION
from ...tvm.types import Attrs
from .rewriter import Rewrite, Rewriter, absorb

CONVOLUTIONS = ("conv2d", "conv2d_transpose")
WIDENS = ("cast", "half_weight")


def reads_halves(kind: str, attrs: Attrs) -> bool:
    """Whether an op is a convolution whose weight may be of halves. In groups 0.17's MergeComposite
    asks for its type before it is known.
    """
    return kind in CONVOLUTIONS and (GENERATION == "relax" or int(attrs["groups"]) == 1)


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
    told = {"is_constant": weight.is_constant, "held": weight.dtype}
    floats = replace(value, name=weight.name, **told)
    made = replace(wide, outputs=(floats,), sources=())
    inputs = (call.inputs[0], floats, *call.inputs[2:])
    return [made, absorb(call, [wide], inputs=inputs)], [wide]
