"""A convolution with channels last, and the result read out of it."""

from __future__ import annotations

from dataclasses import dataclass

from ....._tvm import te, tir
from .....language.types import Attrs, Expr, Shape, Tensor
from ....steps.tensors import extents, reduce_axes
from ..lanes import reader
from .plan import ChannelPlan


@dataclass(frozen=True)
class ChannelStages:
    """The stages of a convolution whose lanes are channels: tensors, and while scheduling their
    blocks.
    """

    sums: Tensor
    result: Tensor
    copy: Tensor | None = None  # the padded rows, where the image does not lie so already


def convolution(
    x: Tensor, weight: Tensor, attrs: Attrs, out: Shape, plan: ChannelPlan, name: str
) -> ChannelStages:
    """The sums with channels last, and the result read out of them."""
    blocks, channels, high, wide, lanes = extents(weight)
    p = plan.lanes
    read, copy = reader(x, p, attrs, tir.const(0, x.dtype), name)
    rc, ry, rx = reduce_axes(rc=channels, ry=high, rx=wide)

    def element(n: Expr, b: Expr, y: Expr, x: Expr, lane: Expr) -> Expr:
        data = read(n, rc, y * p.pitch + x, ry, rx)
        return te.sum(data * weight(b, rc, ry, rx, lane), axis=[rc, ry, rx])

    shape = (out[0], blocks, plan.rows, plan.width, lanes)
    sums = te.compute(shape, element, name=f"{name}_channels")

    def pixel(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        place = (0, y * p.width + x) if plan.is_flat else (y, x)
        return sums(n, tir.floordiv(o, lanes), *place, tir.floormod(o, lanes))

    return ChannelStages(sums, te.compute(out, pixel, name=name), copy)
