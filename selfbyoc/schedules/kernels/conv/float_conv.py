"""NCHW convolutions of floats: Winograd's where it pays, else the direct one.

It is decided where the weight is packed; the computes go by the form that they find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._tvm import te
from ....machine import Machine, machine_at_hand
from ..winograd.compute import convolution as winograd
from ..winograd.pack import pack
from ..winograd.plan import WinogradPlan, form_of, plan
from . import direct

Tensor = Any


def pack_weight(weight: Tensor, call: Any) -> Tensor:
    """[O, I, H, W] as its convolution reads it."""
    found = winograd_plan(call, machine_at_hand(), ahead=call.inputs[1].is_constant)
    return direct.pack_weight(weight) if found is None else pack(weight, found)


def winograd_plan(
    call: Any, machine: Machine, packed: Sequence[int] | None = None, *, ahead: bool = True
) -> WinogradPlan | None:
    """The plan of a conv2d by Winograd, or None."""
    values = [getattr(v, "shape", None) or v[0] for v in (*call.inputs[:2], call.outputs[0])]
    image, kernel, out = values
    return plan(image, kernel, call.attrs, out, machine, call.name, packed, ahead)


def conv2d(ins: Sequence[Tensor], call: Any) -> Tensor:
    """The compute that stands in for `conv2d`: `x` and a packed weight."""
    x, weight = ins
    return convolution(x, weight, call)


def convolution(x: Tensor, weight: Tensor, call: Any) -> Tensor:
    """`x` and the packed weight of a conv2d."""
    ahead = isinstance(weight.op, te.PlaceholderOp)  # packed ahead of time
    found = winograd_plan(call, machine_at_hand(), direct.extents(weight), ahead=ahead)
    if found is None:
        out = getattr(call.outputs[0], "shape", None) or call.outputs[0][0]
        return direct.convolution(x, weight, call.attrs, out, call.name)
    return winograd(x, weight, found, call.name).result


def is_winograd(weight: Tensor, kernel: Sequence[int]) -> bool:
    """Whether a packed weight is [tile, tile, O/16, I, 16], and not [O/16, I, H, W, 16]."""
    return form_of(direct.extents(weight), kernel) != 0
