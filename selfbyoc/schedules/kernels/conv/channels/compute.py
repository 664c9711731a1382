"""A convolution with channels last, and the result read out of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .....tvm import te, tir
from .....tvm.types import PrimExpr, Stage
from ....steps.tensors import extents, reduce_axes, split_index
from ..depth import in_parts
from ..form import Conv2d
from .plan import ChannelPlan


@dataclass(frozen=True)
class ChannelStages:
    """The stages of a convolution whose lanes are channels: tensors, and while scheduling their
    blocks.
    """

    sums: Stage
    result: Stage
    copy: Stage | None = None  # the padded rows, where the image does not lie so already
    parts: Stage | None = None  # the sums over some input channels, where `sums` adds several


def convolution(conv: Conv2d, plan: ChannelPlan) -> ChannelStages:
    """The sums with channels last, and the result read out of them."""
    conv = conv.staged()
    weight, times = conv.weight, conv.operands.times
    blocks, channels, high, wide, lanes = extents(weight)
    left = [n // own for n, own in zip(conv.attrs["strides"], plan.strides, strict=True)]
    read, copy = replace(conv, attrs={**conv.attrs, "strides": left}).reader(plan.lanes)
    depth = plan.depth or channels
    rc, ry, rx = reduce_axes(rc=depth, ry=high, rx=wide)
    size = plan.group or blocks * lanes
    each = -(-size // lanes)

    def element(
        n: PrimExpr, b: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr, part: PrimExpr
    ) -> PrimExpr:
        c = part * depth + rc
        of_group = tir.floordiv(b, each) * channels if plan.group else 0
        data = read(n, of_group + c, plan.lane(y, x), ry, rx)
        return te.sum(times(data, weight(b, c, ry, rx, lane)), axis=[rc, ry, rx])

    shape = (conv.out[0], blocks, plan.rows, plan.width, lanes)
    parts, sums = in_parts(shape, channels // depth, element, f"{conv.name}_channels")

    def pixel(n: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        place = (0, y * plan.size[1] + x) if plan.is_flat else (y, x)
        if not plan.is_apart:
            block, lane = split_index(o, lanes)
            return sums(n, block, *place, lane)
        group, own = split_index(o, size)
        block, lane = split_index(own, lanes)
        return sums(n, group * each + block, *place, lane)

    return ChannelStages(sums, te.compute(conv.out, pixel, name=conv.name), copy, parts)
