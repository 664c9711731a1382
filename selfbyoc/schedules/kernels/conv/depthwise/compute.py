"""A window over each channel by itself: sums along rows of pixels, read out of padded rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .....tvm import te, tir
from .....tvm.types import PrimExpr, Stage, Tensor
from ....steps.tensors import extents, reduce_axes, split_index
from ..form import Conv2d
from .plan import DepthwisePlan

Read = Callable[..., PrimExpr]  # (n, channel, chunk, row, column, y, x of the window) -> a pixel


@dataclass(frozen=True)
class DepthwiseStages:
    """The stages of a window over each channel: tensors, and while scheduling their blocks."""

    sums: Stage
    result: Stage
    copy: Stage | None  # the padded rows of a chunk


def convolution(conv: Conv2d, plan: DepthwisePlan) -> DepthwiseStages:
    """A depthwise convolution with a packed weight."""
    conv, _ = conv.staged().in_floats()
    weight, each = conv.weight, conv.out[1] // int(conv.x.shape[1])
    rows, (lanes, outer) = extents(weight)[-1], (plan.tile[1], conv.out[:2])
    read, copy = _reader(conv.x, plan, conv.operands.outside(conv.x), conv.name)
    ry, rx = reduce_axes(ry=plan.window[0], rx=plan.window[1])

    def element(
        n: PrimExpr, o: PrimExpr, chunk: PrimExpr, y: PrimExpr, t: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        block, row = split_index(o, rows)
        pixel = read(n, tir.floordiv(o, each), chunk, y, t * lanes + lane, ry, rx)
        factor = weight(block, 0, ry, rx, row)
        return te.sum(conv.operands.times(pixel, factor), axis=[ry, rx])

    shape = (*outer, plan.chunks, plan.rows, plan.tiles, lanes)
    sums = te.compute(shape, element, name=f"{conv.name}_sums")
    result = te.compute(
        (*outer, *plan.out),
        lambda n, o, y, x: sums(n, o, *split_index(y, plan.rows), *split_index(x, lanes)),
        name=conv.name,
    )
    return DepthwiseStages(sums, result, copy)


def _reader(
    x: Tensor, plan: DepthwisePlan, fill: PrimExpr, name: str
) -> tuple[Read, Tensor | None]:
    """What reads the image under a tap of the window, and the padded copy that it reads."""
    (sh, sw), (dh, dw) = plan.strides, plan.dilation
    if not plan.copies:

        def direct(
            n: PrimExpr, c: PrimExpr, chunk: PrimExpr, y: PrimExpr, z: PrimExpr, *tap: PrimExpr
        ) -> PrimExpr:
            return x(n, c, (chunk * plan.rows + y) * sh + tap[0] * dh, z + tap[1] * dw)

        return direct, None
    copy = _padded(x, plan, fill, name)

    def read(
        n: PrimExpr, c: PrimExpr, chunk: PrimExpr, y: PrimExpr, z: PrimExpr, *tap: PrimExpr
    ) -> PrimExpr:
        phase, along = tir.floormod(tap[1] * dw, sw), tir.floordiv(tap[1] * dw, sw)
        return copy(n, c, chunk, y * sh + tap[0] * dh, phase, z + along)

    return read, copy


def _padded(x: Tensor, plan: DepthwisePlan, fill: PrimExpr, name: str) -> Tensor:
    """[N, C, H, W] -> [N, C, chunk, row, phase, column]: the rows under each chunk's windows."""
    (top, left), (sh, sw) = plan.before, plan.strides
    batch, channels, height, width = extents(x)

    def element(
        n: PrimExpr, c: PrimExpr, chunk: PrimExpr, q: PrimExpr, f: PrimExpr, p: PrimExpr
    ) -> PrimExpr:
        row, column = chunk * (plan.rows * sh) + q - top, p * sw + f - left
        inside = tir.all(row >= 0, row < height, column >= 0, column < width)
        return tir.if_then_else(inside, x(n, c, row, column), fill)

    shape = (batch, channels, plan.chunks, plan.high, plan.phases, plan.pitch)
    return te.compute(shape, element, name=f"{name}_pad")
