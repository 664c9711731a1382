"""A convolution with channels last, and the result read out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .....language.types import Attrs, Expr, Shape, Tensor
from .....tvm import te, tir
from ....steps.tensors import extents
from ..depth import in_parts
from ..lanes import reader
from ..operands import FLOATS, Operands
from .plan import ChannelPlan


@dataclass(frozen=True)
class ChannelStages:
    """The stages of a convolution whose lanes are channels: tensors, and while scheduling their
    blocks.
    """

    sums: Any
    result: Any
    copy: Any = None  # the padded rows, where the image does not lie so already
    parts: Any = None  # the sums over some input channels, where `sums` adds several


def convolution(
    x: Tensor,
    weight: Tensor,
    attrs: Attrs,
    out: Shape,
    plan: ChannelPlan,
    name: str,
    operands: Operands = FLOATS,
) -> ChannelStages:
    """The sums with channels last, and the result read out of them."""
    blocks, channels, high, wide, lanes = extents(weight)
    p = plan.lanes
    read, copy = reader(x, p, attrs, operands.outside(x), name)
    depth = plan.depth or channels
    rc = te.reduce_axis((0, depth), name="rc")
    ry, rx = te.reduce_axis((0, high), name="ry"), te.reduce_axis((0, wide), name="rx")

    size = plan.group or blocks * lanes
    each = -(-size // lanes)

    def element(n: Expr, b: Expr, y: Expr, x: Expr, lane: Expr, part: Any) -> Expr:
        c = part * depth + rc
        of_group = tir.floordiv(b, each) * channels if plan.group else 0
        data = read(n, of_group + c, plan.lane(y, x), ry, rx)
        return te.sum(operands.times(data, weight(b, c, ry, rx, lane)), axis=[rc, ry, rx])

    shape = (out[0], blocks, plan.rows, plan.width, lanes)
    parts, sums = in_parts(shape, channels // depth, element, f"{name}_channels")

    def pixel(n: Expr, o: Expr, y: Expr, x: Expr) -> Expr:
        place = (0, y * p.width + x) if plan.is_flat else (y, x)
        if not plan.is_apart:
            return sums(n, tir.floordiv(o, lanes), *place, tir.floormod(o, lanes))
        own = tir.floormod(o, size)
        block = tir.floordiv(o, size) * each + tir.floordiv(own, lanes)
        return sums(n, block, *place, tir.floormod(own, lanes))

    return ChannelStages(sums, te.compute(out, pixel, name=name), copy, parts)
