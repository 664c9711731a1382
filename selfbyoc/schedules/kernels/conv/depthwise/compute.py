"""A window over each channel by itself: sums along rows of pixels, read out of padded rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .....graph import OpCall
from .....tvm import te, tir
from .....tvm.types import PrimExpr, Stage, Tensor
from ....steps.tensors import extents, reduce_axes, split_index
from ..form import Conv2d
from .plan import DepthwisePlan

Tap = Callable[..., PrimExpr]  # (n, channel, chunk, row, column, y, x of the window) -> its product


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
    rows = extents(weight)[-1]
    read, copy = _reader(conv.x, plan, conv.operands.outside(conv.x), conv.name)

    def tap(n: PrimExpr, o: PrimExpr, *at: PrimExpr) -> PrimExpr:
        block, row = split_index(o, rows)
        pixel = read(n, tir.floordiv(o, each), *at)
        return conv.operands.times(pixel, weight(block, 0, *at[-2:], row))

    return _windows(tap, te.sum, plan, conv.out[:2], conv.name, copy)


def pooled(
    x: Tensor,
    call: OpCall,
    plan: DepthwisePlan,
    combine: Callable[..., PrimExpr],
    fill: PrimExpr,
    name: str,
) -> DepthwiseStages:
    """`combine` of the elements under each window of a pool; `fill` is outside the image."""
    read, copy = _reader(x, plan, fill, name)
    return _windows(read, combine, plan, call.outputs[0].shape[:2], name, copy)


def _windows(
    tap: Tap,
    combine: Callable[..., PrimExpr],
    plan: DepthwisePlan,
    outer: Sequence[int],
    name: str,
    copy: Tensor | None,
) -> DepthwiseStages:
    ry, rx = reduce_axes(ry=plan.window[0], rx=plan.window[1])
    sums = te.compute(
        (*outer, plan.chunks, plan.rows, plan.tiles, plan.tile[1]),
        lambda n, o, chunk, y, t, lane: combine(
            tap(n, o, chunk, y, t * plan.tile[1] + lane, ry, rx), axis=[ry, rx]
        ),
        name=f"{name}_sums",
    )
    result = te.compute(
        (*outer, *plan.out),
        lambda n, o, y, x: sums(n, o, *split_index(y, plan.rows), *split_index(x, plan.tile[1])),
        name=name,
    )
    return DepthwiseStages(sums, result, copy)


def _reader(x: Tensor, plan: DepthwisePlan, fill: PrimExpr, name: str) -> tuple[Tap, Tensor | None]:
    """What reads the image under a tap of the window, and the padded copy that it reads."""
    (sh, sw), (dh, dw) = plan.strides, plan.dilation
    if not plan.copies:

        def direct(
            n: PrimExpr, c: PrimExpr, chunk: PrimExpr, y: PrimExpr, z: PrimExpr, *tap: PrimExpr
        ) -> PrimExpr:
            row = (chunk * plan.rows + y) * sh + tap[0] * dh
            return x(n, c, row, z * sw + tap[1] * dw)

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
