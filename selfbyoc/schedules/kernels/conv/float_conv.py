"""NCHW convolutions of floats: Winograd's where it pays, else the direct one.

It is decided where the weight is packed; the computes go by the form that they find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._tvm import te
from ....language.decisions import choose
from ..winograd import compute as winograd
from ..winograd.tiling import cut, decided
from . import direct

Tensor = Any


def pack_weight(weight: Tensor, call: Any) -> Tensor:
    """[O, I, H, W] as its convolution reads it."""
    image, kernel, out = (v.shape for v in (call.inputs[0], call.inputs[1], call.outputs[0]))
    if not call.inputs[1].is_constant:  # packed at every call, which costs more than it saves
        return direct.pack_weight(weight)
    m = _form(image, kernel, call.attrs, out, call.name)
    return winograd.pack_weight(weight, m) if m else direct.pack_weight(weight)


def conv2d(ins: Sequence[Tensor], call: Any) -> Tensor:
    """The compute that stands in for `conv2d`: `x` and a packed weight."""
    kernel, out = call.inputs[1].shape, call.outputs[0].shape
    x, weight = ins
    return convolution(x, weight, kernel, call.attrs, out, call.name)


def convolution(
    x: Tensor, weight: Tensor, kernel: Sequence[int], attrs: Any, out: Sequence[int], name: str
) -> Tensor:
    """`x` and the packed form of a weight of shape `kernel`."""
    if isinstance(weight.op, te.PlaceholderOp):  # packed ahead of time, as is decided again
        _form(direct.extents(x), kernel, attrs, out, name)
    if not is_winograd(weight, kernel):
        return direct.convolution(x, weight, attrs, out, name)
    usual = cut(out, direct.extents(weight)[0] - kernel[2] + 1, kernel[2])
    tiling = decided(usual, name)
    return winograd.convolution(x, weight, attrs["padding"], out, tiling, name)


def _form(
    image: Sequence[int], kernel: Sequence[int], attrs: Any, out: Sequence[int], name: str
) -> int:
    """The m of Winograd's F(m, r), or 0."""
    usual = winograd.choose(image, kernel, attrs, out)
    return choose(f"{name}.winograd", winograd.near(image, kernel, attrs, out), usual)


def is_winograd(weight: Tensor, kernel: Sequence[int]) -> bool:
    """Whether a packed weight is [tile, tile, O/16, I, 16], and not [O/16, I, H, W, 16]."""
    return direct.extents(weight)[2:4] != tuple(kernel[2:])
