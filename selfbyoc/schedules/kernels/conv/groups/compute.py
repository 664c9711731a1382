"""A depthwise or grouped convolution by vectors of groups, as te.compute.

x [N, C, H, W] -> turned [N, G/16, C/G, H*W, 16] -> framed, with padding -> sums
[N, G/16, O/G, H, W, 16] -> rows [N, G/16, O/G, 16, H*W] -> y [N, O, H, W]
"""

from __future__ import annotations

from dataclasses import dataclass

from .....tvm import te, tir
from .....tvm.types import PrimExpr, Stage, Tensor
from ....steps.tensors import extents, reduce_axes, split_index
from ....steps.tiles import BLOCK
from ..form import Conv2d
from .plan import GroupPlan


@dataclass(frozen=True)
class GroupStages:
    """The stages of a convolution whose lanes are groups: tensors, and while scheduling their
    blocks.
    """

    copy: Stage  # the image with groups last
    frame: Stage | None  # that with its padding; None where there is none
    sums: Stage
    rows: Stage  # the sums with pixels last
    result: Stage


def convolution(conv: Conv2d, plan: GroupPlan) -> GroupStages:
    """The sums with groups last, and the result read out of them."""
    conv = conv.staged()
    weight, out, name = conv.weight, conv.out, conv.name
    blocks, each, inner, high, wide, lanes = extents(weight)
    copy = _turned(conv.x, blocks, inner, plan, name)
    frame = _framed(copy, plan, name) if plan.is_padded else None
    (sh, sw), (dh, dw), width = plan.strides, plan.dilation, plan.image[1]
    rc, ry, rx = reduce_axes(rc=inner, ry=high, rx=wide)

    def product(
        n: PrimExpr, b: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        row, column = y * sh + ry * dh, x * sw + rx * dw
        place = (row * width + column,) if frame is None else (row, column)
        data = (copy if frame is None else frame)(n, b, rc, *place, lane)
        return te.sum(data * weight(b, o, rc, ry, rx, lane), axis=[rc, ry, rx])

    shape = (out[0], blocks, each, out[2], out[3], lanes)
    sums = te.compute(shape, product, name=f"{name}_groups")
    rows = te.compute(
        (out[0], blocks, each, lanes, out[2] * out[3]),
        lambda n, b, o, lane, p: sums(n, b, o, *split_index(p, out[3]), lane),
        name=f"{name}_rows",
    )

    def pixel(n: PrimExpr, c: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        group, own = split_index(c, each)
        block, lane = split_index(group, BLOCK)
        return rows(n, block, own, lane, y * out[3] + x)

    return GroupStages(copy, frame, sums, rows, te.compute(out, pixel, name=name))


def _turned(x: Tensor, blocks: int, inner: int, plan: GroupPlan, name: str) -> Tensor:
    """The image with groups last; groups after the last one repeat it, and nobody reads them."""
    batch, _, high, wide = extents(x)

    def element(n: PrimExpr, b: PrimExpr, i: PrimExpr, p: PrimExpr, lane: PrimExpr) -> PrimExpr:
        group = b * BLOCK + lane
        group = group if plan.groups % BLOCK == 0 else tir.Min(group, plan.groups - 1)
        return x(n, group * inner + i, *split_index(p, wide))

    return te.compute((batch, blocks, inner, high * wide, BLOCK), element, name=f"{name}_turned")


def _framed(image: Tensor, plan: GroupPlan, name: str) -> Tensor:
    """The rows and columns under the windows, zeros outside of the image."""
    (high, wide), (top, left) = plan.image, plan.before

    def element(
        n: PrimExpr, b: PrimExpr, i: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        row, column = y - top, x - left
        inside = tir.all(row >= 0, row < high, column >= 0, column < wide)
        value = image(n, b, i, row * wide + column, lane)
        return tir.if_then_else(inside, value, tir.const(0, image.dtype))

    batch, blocks, inner, _, lanes = extents(image)
    return te.compute((batch, blocks, inner, *plan.framed, lanes), element, name=f"{name}_framed")
