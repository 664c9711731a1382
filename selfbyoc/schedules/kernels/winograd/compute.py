"""Winograd convolution: 3x3 and 5x5 windows at stride 1 by products of transformed tiles.

F(m, r) computes m x m outputs of an r x r window from a tile of (m + r - 1)^2 inputs, with a
product an element for each pair of channels instead of r^2 m^2: F(4, 3) with 4 times fewer, F(2, 3)
2.25 times, F(2, 5) 2.8 times. Lavin and Gray, Fast
Algorithms for Convolutional Neural Networks, 2015. Lanes are channels: the transforms are sums of
vectors, the products one matrix product for each element of a tile.

Where the taps of a window are apart, pixels that share taps are images of their own.

A block is some rows of tiles of one image, or some images: what one task computes. Its tiles are
multiplied some at a time, `tiles` of a register tile in each of `steps`; the last tile is repeated
where they do not fill the last step.

    image   [n, y, x, c]                            the input, padded, channels last
    columns [n block, y block, step, tile, e, x, c]         B^T d
    inputs  [n block, y block, e, f, step, tile, c]         B^T d B
    sums    [n block, y block, o/16, e, f, step, tile, 16]  over c, of inputs * packed weight
    rows    [n block, y block, o/16, tile of the block, y, f, 16]   A^T sums
    pixels  [n block, y block, o/16, y, x, 16]              A^T sums A
    result  [n, o, y, x]
"""

from __future__ import annotations

from dataclasses import dataclass

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, reduce_axes, split_index
from ...steps.tiles import BLOCK, blocks_of
from ..conv.form import Conv2d
from .integers import WORD_DTYPE, settled, unscaled
from .matrices import matrices, times
from .plan import WinogradPlan


@dataclass(frozen=True)
class WinogradStages:
    """The stages of a Winograd convolution: tensors, and while scheduling their blocks."""

    image: Tensor
    columns: Tensor
    inputs: Tensor
    sums: Tensor
    rows: Tensor
    pixels: Tensor
    result: Tensor

    @property
    def copy(self) -> Tensor:
        """What lays the image out."""
        return self.image


def convolution(conv: Conv2d, plan: WinogradPlan) -> WinogradStages:
    """NCHW image and packed weight -> NCHW image, by seven stages; of words as of floats."""
    stem = f"{conv.name}_wino"
    image = _image(conv.x, plan, conv.operands.outside(conv.x), f"{stem}_image")
    columns, inputs = _inputs(image, plan, stem)
    sums = _sums(inputs, conv, plan, f"{stem}_sums")
    rows, pixels = _outputs(sums, plan, stem)
    t = plan.tiling
    tall = t.rows * t.m  # pixels of a block, in each of its images

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        if plan.apart > 1:
            n = (n * plan.apart + tir.floormod(y, plan.apart)) * plan.apart
            n += tir.floormod(z, plan.apart)
            y, z = tir.floordiv(y, plan.apart), tir.floordiv(z, plan.apart)
        (i, ni), (j, yi), (block, lane) = map(split_index, (n, y, o), (t.images, tall, BLOCK))
        return pixels(i, j, block, ni * tall + yi, z, lane)

    result = te.compute(plan.out, element, name=conv.name)
    return WinogradStages(image, columns, inputs, sums, rows, pixels, result)


def _image(x: Tensor, plan: WinogradPlan, fill: PrimExpr, name: str) -> Tensor:
    """The image as far as tiles reach, `fill` around it, its channels last and filled up to whole
    blocks, whose weights are zero.
    """
    _, channels, height, width = extents(x)
    (top, left), t, step = plan.pads, plan.tiling, plan.apart

    def padded(n: PrimExpr, y: PrimExpr, z: PrimExpr, c: PrimExpr) -> PrimExpr:
        if step > 1:
            y = y * step + tir.floordiv(tir.floormod(n, step**2), step)
            n, z = tir.floordiv(n, step**2), z * step + tir.floormod(n, step)
        row, column = y - top, z - left
        inside = tir.all(row >= 0, row < height, column >= 0, column < width, c < channels)
        return tir.if_then_else(inside, x(n, c, row, column), fill)

    reach = t.window - 1
    shape = (t.batch, t.down * t.m + reach, t.along * t.m + reach, blocks_of(channels) * BLOCK)
    return te.compute(shape, padded, name=name)


def _inputs(image: Tensor, plan: WinogradPlan, name: str) -> tuple[Tensor, Tensor]:
    """B^T d, and B^T d B of every tile."""
    t = plan.tiling
    b, _, _ = matrices(t.m, t.window, image.dtype)
    size, lanes, tiles = t.size, int(image.shape[3]), plan.products.tiles

    def column(
        i: PrimExpr,
        j: PrimExpr,
        step: PrimExpr,
        tile: PrimExpr,
        e: PrimExpr,
        z: PrimExpr,
        c: PrimExpr,
    ) -> PrimExpr:
        n, y, x = t.place((i, j), step * tiles + tile)
        return times(b, e, lambda r: image(n, y * t.m + r, x * t.m + z, c))

    shape = (*t.blocks, plan.steps, tiles, size, size, lanes)
    columns = te.compute(shape, column, name=f"{name}_columns")

    def whole(
        i: PrimExpr,
        j: PrimExpr,
        e: PrimExpr,
        f: PrimExpr,
        step: PrimExpr,
        tile: PrimExpr,
        c: PrimExpr,
    ) -> PrimExpr:
        found = times(b, f, lambda z: columns(i, j, step, tile, e, z, c))
        return settled(found) if image.dtype == WORD_DTYPE else found

    shape = (*t.blocks, size, size, plan.steps, tiles, lanes)
    return columns, te.compute(shape, whole, name=f"{name}_inputs")


def _sums(inputs: Tensor, conv: Conv2d, plan: WinogradPlan, name: str) -> Tensor:
    """The products of every element of the tiles, summed over the input channels."""
    t, times_ = plan.tiling, conv.operands.times
    (k,) = reduce_axes(k=int(conv.x.shape[1]))
    return te.compute(
        (*t.blocks, plan.out_blocks, t.size, t.size, plan.steps, plan.products.tiles, BLOCK),
        lambda i, j, o, e, f, s, tile, lane: te.sum(
            times_(inputs(i, j, e, f, s, tile, k), conv.weight(e, f, o, k, lane)), axis=k
        ),
        name=name,
    )


def _outputs(sums: Tensor, plan: WinogradPlan, name: str) -> tuple[Tensor, Tensor]:
    """A^T sums, and A^T sums A: the pixels of every tile."""
    t, tiles = plan.tiling, plan.products.tiles
    _, _, a = matrices(t.m, t.window, sums.dtype)
    m = t.m

    def row(
        i: PrimExpr,
        j: PrimExpr,
        o: PrimExpr,
        tile: PrimExpr,
        y: PrimExpr,
        f: PrimExpr,
        lane: PrimExpr,
    ) -> PrimExpr:
        at = split_index(tile, tiles)
        return times(a, y, lambda e: sums(i, j, o, e, f, *at, lane))

    shape = (*t.blocks, plan.out_blocks, t.block, m, t.size, BLOCK)
    rows = te.compute(shape, row, name=f"{name}_rows")

    def pixel(
        i: PrimExpr, j: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        tile = tir.floordiv(y, m) * t.along + tir.floordiv(x, m)
        inside = tir.floormod(y, m)
        found = times(a, tir.floormod(x, m), lambda f: rows(i, j, o, tile, inside, f, lane))
        return unscaled(found, m, t.window) if sums.dtype == WORD_DTYPE else found

    whole = (*t.blocks, plan.out_blocks, t.images * t.rows * m, t.along * m, BLOCK)
    return rows, te.compute(whole, pixel, name=f"{name}_pixels")
