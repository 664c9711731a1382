"""A 1x1 convolution over flat pixels: panels of pixels, sums, and the result read out of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....._tvm import te, tir
from .....language.types import Attrs, Expr, Shape, Tensor
from ....steps.tensors import extents, or_zero, reduce_axes
from .plan import IN_PLACE, PointwisePlan


@dataclass(frozen=True)
class PointwiseStages:
    """The stages of a 1x1 convolution: tensors, and while scheduling their blocks."""

    sums: Tensor
    result: Tensor
    pixels: Tensor | None = None  # those that a stride leaves, together
    panels: Tensor | None = None  # [n, tile, channel, lane]


def convolution(
    x: Tensor, weight: Tensor, attrs: Attrs, out: Shape, plan: PointwisePlan, name: str
) -> PointwiseStages:
    """The sums over all channels, and the result read out of them."""
    blocks, channels, _, _, rows = extents(weight)
    lanes, width = plan.lanes, out[3]
    pixels = _pixels(x, attrs["strides"], out, name)
    image = x if pixels is None else pixels

    def pixel(n: Expr, t: Expr, c: Expr, lane: Expr) -> Expr:
        at = t * lanes + lane
        return image(n, c, tir.floordiv(at, width), tir.floormod(at, width))

    panels = None if plan.panels == IN_PLACE else _panels(pixel, x, plan, name)
    (k,) = reduce_axes(k=channels)
    read = pixel if panels is None else panels
    sums = te.compute(
        (out[0], blocks, rows, plan.tiles, lanes),
        lambda n, b, r, t, lane: te.sum(read(n, t, k, lane) * weight(b, k, 0, 0, r), axis=k),
        name=f"{name}_product",
    )

    def element(n: Expr, o: Expr, y: Expr, z: Expr) -> Expr:
        block, at = (tir.floordiv(o, rows), tir.floormod(o, rows)), y * width + z
        return sums(n, *block, tir.floordiv(at, lanes), tir.floormod(at, lanes))

    return PointwiseStages(sums, te.compute(out, element, name=name), pixels, panels)


def _pixels(x: Tensor, strides: Shape, out: Shape, name: str) -> Tensor | None:
    """The pixels of an image that a stride leaves, together."""
    down, along = strides
    if (down, along) == (1, 1):
        return None
    shape = (out[0], int(x.shape[1]), *out[2:])
    return te.compute(shape, lambda n, c, y, z: x(n, c, y * down, z * along), name=f"{name}_pixels")


def _panels(pixel: Callable[..., Expr], x: Tensor, plan: PointwisePlan, name: str) -> Tensor:
    """The pixels of each tile; those after the last are zero."""

    def element(n: Expr, t: Expr, c: Expr, lane: Expr) -> Expr:
        at, padded = t * plan.lanes + lane, plan.tiles * plan.lanes
        return or_zero(at, plan.pixels, padded, lambda _: pixel(n, t, c, lane))

    shape = (int(x.shape[0]), plan.tiles, int(x.shape[1]), plan.lanes)
    return te.compute(shape, element, name=f"{name}_panels")
