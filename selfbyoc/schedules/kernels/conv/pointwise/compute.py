"""A 1x1 convolution over flat pixels: panels of pixels, sums, and the result read out of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .....tvm import te, tir
from .....tvm.types import PrimExpr, Shape, Stage, Tensor
from ....steps.tensors import extents, reduce_axes, split_index
from ..depth import partial_sums
from ..form import Conv2d
from .plan import IN_PLACE, PointwisePlan


@dataclass(frozen=True)
class PointwiseStages:
    """The stages of a 1x1 convolution: tensors, and while scheduling their blocks."""

    sums: Stage
    result: Stage
    pixels: Stage | None = None  # those that a stride leaves, together
    copy: Stage | None = None  # the padded rows, where a window does not read the image as it lies
    panels: Stage | None = None  # [n, tile, channel, y, x, lane]; y and x in the window
    before: Stage | None = (
        None  # sums over the other input channels, where `sums` is over the last ones
    )
    parts: Stage | None = None  # what `before` adds
    # Of a weight of halves: the floats that the sums read, and those that the parts do.
    floats: Stage | None = None
    floats_before: Stage | None = None


def convolution(conv: Conv2d, plan: PointwisePlan) -> PointwiseStages:
    """The sums over all channels, and the result read out of them. What is computed of the image
    first is part of the panels, which read each pixel once.
    """
    if plan.panels == IN_PLACE or plan.padded is not None:
        conv = conv.staged()
    asked, (conv, floats) = conv, conv.in_floats()
    out, name, times = conv.out, conv.name, conv.operands.times
    blocks, channels, high, wide, rows = extents(conv.weight)
    lanes, width = plan.lanes, out[3]
    pixel, pixels, copy = _image(conv, plan)
    panels = None
    if plan.panels != IN_PLACE:
        read = (int(conv.x.shape[0]), channels, high, wide)
        panels = _panels(pixel, read, conv.x.dtype, plan, name)
    depth = plan.depth or channels
    k, ry, rx = reduce_axes(k=depth, ry=high, rx=wide)
    read = pixel if panels is None else panels

    def part_of(
        weight: Tensor,
        n: PrimExpr,
        b: PrimExpr,
        r: PrimExpr,
        t: PrimExpr,
        lane: PrimExpr,
        part: PrimExpr,
    ) -> PrimExpr:
        c = part * depth + k
        element, factor = read(n, t, c, ry, rx, lane), weight(b, c, ry, rx, r)
        return te.sum(times(element, factor), axis=[k, ry, rx])

    shape = (out[0], blocks, rows, plan.tiles, lanes)
    last, parts, before, floats_before = channels // depth - 1, None, None, None
    if last:
        own, floats_before = asked.in_floats("floats_before")
        parts, before = partial_sums(shape, last, partial(part_of, own.weight), f"{name}_before")
    sums = te.compute(
        shape,
        lambda n, b, r, t, lane: part_of(conv.weight, n, b, r, t, lane, last),
        name=f"{name}_product",
    )

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        index = (n, *split_index(o, rows), *split_index(y * width + z, lanes))
        return sums(*index) if before is None else before(*index) + sums(*index)

    result = te.compute(out, element, name=name)
    return PointwiseStages(sums, result, pixels, copy, panels, before, parts, floats, floats_before)


def _image(conv: Conv2d, plan: PointwisePlan) -> tuple[Any, Tensor | None, Tensor | None]:
    """What reads the image at (n, tile, channel, y, x, lane), and the copies that it reads: the
    pixels that a stride leaves, or padded rows.
    """
    width, lanes = conv.out[3], plan.lanes
    if plan.padded is not None:
        p = plan.padded
        read, copy = conv.reader(p)

        def under(
            n: PrimExpr, t: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr, lane: PrimExpr
        ) -> PrimExpr:
            at = t * lanes + lane
            row, column = split_index(at, width)
            return read(n, c, row * p.pitch + column, y, z)

        return under, None, copy
    pixels = _pixels(conv.x, conv.attrs["strides"], conv.out, conv.name)
    image = conv.x if pixels is None else pixels

    def pixel(
        n: PrimExpr, t: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        return image(n, c, *split_index(t * lanes + lane, width))

    return pixel, pixels, None


def _pixels(x: Tensor, strides: Shape, out: Shape, name: str) -> Tensor | None:
    """The pixels of an image that a stride leaves, together."""
    down, along = strides
    if (down, along) == (1, 1):
        return None
    shape = (out[0], int(x.shape[1]), *out[2:])
    return te.compute(shape, lambda n, c, y, z: x(n, c, y * down, z * along), name=f"{name}_pixels")


def _panels(
    pixel: Callable[..., PrimExpr], read: Shape, dtype: str, plan: PointwisePlan, name: str
) -> Tensor:
    """The pixels of each tile; those after the last are zero."""

    def element(
        n: PrimExpr, t: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        value = pixel(n, t, c, y, z, lane)
        if plan.pixels % plan.lanes == 0:
            return value
        inside = t * plan.lanes + lane < plan.pixels
        return tir.if_then_else(inside, value, tir.const(0, dtype))

    images, *inner = read
    shape = (images, plan.tiles, *inner, plan.lanes)
    return te.compute(shape, element, name=f"{name}_panels")
