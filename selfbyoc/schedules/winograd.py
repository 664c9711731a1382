"""Winograd convolution: 3x3 windows at stride 1 by products of transformed tiles.

F(m, 3) computes m x m outputs from (m + 2) x (m + 2) inputs with (m + 2)^2 products for each pair
of channels instead of 9 m^2: 4 times fewer for m = 4, 2.25 times for m = 2. Lavin and Gray, Fast
Algorithms for Convolutional Neural Networks, 2015. Lanes are channels: the transforms are sums of
vectors, the products one matrix product for each of the (m + 2)^2 elements of a tile.

Tiles are numbered through all images of a batch, and come in blocks that are one task each:

    image   [n, y, x, c]               the input, padded, channels last
    inputs  [block, e, f, tile, c]     B^T d B
    sums    [block, o/16, e, f, tile, 16]   over c, of inputs * packed weight
    rows    [block, o/16, tile, y, f, 16]   A^T sums
    pixels  [block, o/16, tile, y, x, 16]   rows A
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._tvm import te, tir
from .winograd_matrices import matrices, row_of

SAVED = 1000  # products a weight that F(4, 3) must save: 14 x 14 pixels save 1188, 7 x 7 only 297
MOST = 14  # tiles of a block: a register tile of two vectors each in AVX-512
LANES = 16  # channels that lie together: one AVX-512 vector, two of AVX2, four of SSE or NEON

Tensor = Any


@dataclass(frozen=True)
class Tiling:
    """How the outputs of a convolution are cut into tiles of m x m, and tiles into blocks."""

    m: int
    batch: int
    down: int  # tiles in a column of an image
    along: int  # tiles in a row
    block: int  # tiles of a block

    @property
    def count(self) -> int:
        """Tiles in all."""
        return self.batch * self.down * self.along

    @property
    def blocks(self) -> int:
        """Blocks in all; the last may hold tiles that nobody reads."""
        return -(-self.count // self.block)

    def place(self, tile: Any) -> tuple[Any, Any, Any]:
        """Image, row and column of a tile; one behind the last repeats the last."""
        if self.blocks * self.block > self.count:
            tile = tir.Min(tile, self.count - 1)
        each = self.down * self.along
        inside = tir.floormod(tile, each)
        return (
            tir.floordiv(tile, each),
            tir.floordiv(inside, self.along),
            tir.floormod(inside, self.along),
        )

    def tile(self, n: Any, y: Any, x: Any) -> Any:
        """The tile of an output pixel."""
        return (n * self.down + tir.floordiv(y, self.m)) * self.along + tir.floordiv(x, self.m)


def _blocks(channels: int) -> int:
    return -(-channels // LANES)


def pack_weight(weight: Tensor, m: int) -> Tensor:
    """[O, I, 3, 3] -> G w G^T as [m + 2, m + 2, O/16, I, 16]."""
    out, inner, *_ = (int(extent) for extent in weight.shape)
    _, g, _ = matrices(m)
    size = m + 2

    def half(e: Any, o: Any, i: Any, x: Any) -> Any:
        return row_of(g, e, lambda y: weight(o, i, y, x))

    columns = te.compute((size, out, inner, 3), half, name=f"{weight.op.name}_columns")

    def whole(e: Any, f: Any, b: Any, i: Any, lane: Any) -> Any:
        o = b * LANES + lane
        value = row_of(g, f, lambda x: columns(e, tir.Min(o, out - 1), i, x))
        return (
            value if out % LANES == 0 else tir.if_then_else(o < out, value, tir.const(0, "float32"))
        )

    return te.compute(
        (size, size, _blocks(out), inner, LANES), whole, name=f"{weight.op.name}_packed"
    )


def convolution(
    x: Tensor, weight: Tensor, pads: Sequence[int], out: Sequence[int], t: Tiling, name: str
) -> Tensor:
    """NCHW image and packed weight -> NCHW image, of five stages."""
    name = f"{name}_wino"
    inputs = _inputs(_image(x, pads, t, f"{name}_image"), t, name)
    pixels = _outputs(_sums(inputs, weight, int(x.shape[1]), f"{name}_sums"), t, name)

    def element(n: Any, o: Any, y: Any, z: Any) -> Any:
        at = t.tile(n, y, z)
        channel = (tir.floordiv(o, LANES), tir.floormod(o, LANES))
        inside = (tir.floormod(y, t.m), tir.floormod(z, t.m))
        block, tile = tir.floordiv(at, t.block), tir.floormod(at, t.block)
        return pixels(block, channel[0], tile, *inside, channel[1])

    return te.compute(out, element, name=name.removesuffix("_wino"))


def _image(x: Tensor, pads: Sequence[int], t: Tiling, name: str) -> Tensor:
    """The image as far as tiles reach, its channels last and filled up to whole vectors."""
    _, channels, height, width = (int(extent) for extent in x.shape)
    top, left = pads[:2]

    def padded(n: Any, y: Any, z: Any, c: Any) -> Any:
        row, column = y - top, z - left
        inside = tir.all(row >= 0, row < height, column >= 0, column < width, c < channels)
        return tir.if_then_else(inside, x(n, c, row, column), tir.const(0, "float32"))

    lanes = _blocks(channels) * LANES
    return te.compute((t.batch, t.down * t.m + 2, t.along * t.m + 2, lanes), padded, name=name)


def _inputs(image: Tensor, t: Tiling, name: str) -> Tensor:
    """B^T d B of every tile."""
    b, _, _ = matrices(t.m)
    size, lanes = t.m + 2, int(image.shape[3])

    def column(block: Any, tile: Any, e: Any, j: Any, c: Any) -> Any:
        n, y, z = t.place(block * t.block + tile)
        return row_of(b, e, lambda i: image(n, y * t.m + i, z * t.m + j, c))

    shape = (t.blocks, t.block, size, size, lanes)
    columns = te.compute(shape, column, name=f"{name}_columns")
    return te.compute(
        (t.blocks, size, size, t.block, lanes),
        lambda block, e, f, tile, c: row_of(b, f, lambda j: columns(block, tile, e, j, c)),
        name=f"{name}_inputs",
    )


def _sums(inputs: Tensor, weight: Tensor, channels: int, name: str) -> Tensor:
    """The products of every element of the tiles, summed over the input channels."""
    blocks, size, _, block, _ = (int(extent) for extent in inputs.shape)
    k = te.reduce_axis((0, channels), name="k")
    return te.compute(
        (blocks, int(weight.shape[2]), size, size, block, LANES),
        lambda block, o, e, f, tile, lane: te.sum(
            inputs(block, e, f, tile, k) * weight(e, f, o, k, lane), axis=k
        ),
        name=name,
    )


def _outputs(sums: Tensor, t: Tiling, name: str) -> Tensor:
    """A^T sums A: the pixels of every tile."""
    _, _, a = matrices(t.m)
    out_blocks, m = int(sums.shape[1]), t.m
    rows = te.compute(
        (t.blocks, out_blocks, t.block, m, m + 2, LANES),
        lambda block, o, tile, y, f, lane: row_of(a, y, lambda i: sums(block, o, i, f, tile, lane)),
        name=f"{name}_rows",
    )
    return te.compute(
        (t.blocks, out_blocks, t.block, m, m, LANES),
        lambda block, o, tile, y, z, lane: row_of(a, z, lambda j: rows(block, o, tile, y, j, lane)),
        name=f"{name}_pixels",
    )


def pays(image: Sequence[int], kernel: Sequence[int], attrs: Any, out: Sequence[int]) -> bool:
    """Whether F(4, 3) is the better convolution.

    A transformed weight is four times as large. It must save products enough for each weight that
    reading it, from memory in the worst case, does not cost more.
    """
    if os.environ.get("SELFBYOC_WINOGRAD", "1") == "0":
        return False
    plain = tuple(kernel[2:]) == (3, 3) and attrs["groups"] == 1
    plain = plain and tuple(attrs["strides"]) == tuple(attrs["dilation"]) == (1, 1)
    if not plain or min(image[1], out[1]) < LANES:
        return False
    direct, ours = 9 * out[0] * math.prod(out[2:]), 36 * cut(out, 4).count
    return direct - ours >= SAVED


def cut(out: Sequence[int], m: int) -> Tiling:
    """The tiles of a result, in blocks with little waste in the last."""
    down, along = -(-out[2] // m), -(-out[3] // m)
    count = out[0] * down * along
    block = count
    if count > MOST:
        block = min(range(MOST // 2, MOST + 1), key=lambda b: (-(-count // b) * b, -b))
    return Tiling(m, out[0], down, along, block)
