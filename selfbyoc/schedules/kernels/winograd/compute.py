"""Winograd convolution: 3x3 and 5x5 windows at stride 1 by products of transformed tiles.

F(m, r) computes m x m outputs of an r x r window from a tile of (m + r - 1)^2 inputs, with a
product an element for each pair of channels instead of r^2 m^2: F(4, 3) with 4 times fewer, F(2, 3)
2.25 times, F(2, 5) 2.8 times. Lavin and Gray, Fast
Algorithms for Convolutional Neural Networks, 2015. Lanes are channels: the transforms are sums of
vectors, the products one matrix product for each element of a tile.

A block is some rows of tiles of one image, or some images: what one task computes.

    image   [n, y, x, c]                            the input, padded, channels last
    columns [n block, y block, tile, e, x, c]       B^T d
    inputs  [n block, y block, e, f, tile, c]       B^T d B
    sums    [n block, y block, o/16, e, f, tile, 16]   over c, of inputs * packed weight
    rows    [n block, y block, o/16, tile, y, f, 16]   A^T sums
    pixels  [n block, y block, o/16, y, x, 16]      A^T sums A
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...._tvm import te, tir
from .matrices import FORMS, matrices, times
from .tiling import Tiling, cut

# Time in multiplications of its products, of which a core of Zen 5 does 130 in a nanosecond (two
# cores, Nov 2026); direct ones run a tenth slower, and their time is all there is but padding.
DIRECT = 1.1
PIXEL = 50  # to pad and store one
EACH = {(2, 3): 250, (4, 3): 1000, (2, 5): 500}  # to transform a tile on each side, by m and r
# To read a byte of the weights, from memory as in a whole model: two cores get 40 in a nanosecond.
# They do it while they multiply. Weights in L3 take a third of it, but the model is what counts.
BYTE = 6.5
GAIN = 1.1  # less is within the error of this model, and direct weights are smaller
UNSURE = 1.25  # times this near may be the other way round: the tuner measures them
LANES = 16  # channels that lie together: one AVX-512 vector, two of AVX2, four of SSE or NEON

Tensor = Any


def _blocks(channels: int) -> int:
    return -(-channels // LANES)


def pack_weight(weight: Tensor, m: int) -> Tensor:
    """[O, I, r, r] -> G w G^T as [m + r - 1, m + r - 1, O/16, I, 16]."""
    out, inner, window, _ = (int(extent) for extent in weight.shape)
    _, g, _ = matrices(m, window)
    size = m + window - 1

    def half(e: Any, o: Any, i: Any, x: Any) -> Any:
        return times(g, e, lambda y: weight(o, i, y, x))

    columns = te.compute((size, out, inner, window), half, name=f"{weight.op.name}_columns")

    def whole(e: Any, f: Any, b: Any, i: Any, lane: Any) -> Any:
        o = b * LANES + lane
        value = times(g, f, lambda x: columns(e, tir.Min(o, out - 1), i, x))
        return (
            value if out % LANES == 0 else tir.if_then_else(o < out, value, tir.const(0, "float32"))
        )

    return te.compute(
        (size, size, _blocks(out), inner, LANES), whole, name=f"{weight.op.name}_packed"
    )


def convolution(
    x: Tensor, weight: Tensor, pads: Sequence[int], out: Sequence[int], t: Tiling, name: str
) -> Tensor:
    """NCHW image and packed weight -> NCHW image, of seven stages."""
    stem = f"{name}_wino"
    inputs = _inputs(_image(x, pads, t, f"{stem}_image"), t, stem)
    pixels = _outputs(_sums(inputs, weight, int(x.shape[1]), f"{stem}_sums"), t, stem)
    tall = t.rows * t.m  # pixels of a block, in each of its images

    def element(n: Any, o: Any, y: Any, z: Any) -> Any:
        block = (tir.floordiv(n, t.images), tir.floordiv(y, tall))
        row = tir.floormod(n, t.images) * tall + tir.floormod(y, tall)
        return pixels(*block, tir.floordiv(o, LANES), row, z, tir.floormod(o, LANES))

    return te.compute(out, element, name=name)


def _image(x: Tensor, pads: Sequence[int], t: Tiling, name: str) -> Tensor:
    """The image as far as tiles reach, its channels last and filled up to whole vectors."""
    _, channels, height, width = (int(extent) for extent in x.shape)
    top, left = pads[:2]

    def padded(n: Any, y: Any, z: Any, c: Any) -> Any:
        row, column = y - top, z - left
        inside = tir.all(row >= 0, row < height, column >= 0, column < width, c < channels)
        return tir.if_then_else(inside, x(n, c, row, column), tir.const(0, "float32"))

    lanes = _blocks(channels) * LANES
    reach = t.window - 1
    shape = (t.batch, t.down * t.m + reach, t.along * t.m + reach, lanes)
    return te.compute(shape, padded, name=name)


def _inputs(image: Tensor, t: Tiling, name: str) -> Tensor:
    """B^T d B of every tile."""
    b, _, _ = matrices(t.m, t.window)
    size, lanes = t.size, int(image.shape[3])

    def column(i: Any, j: Any, tile: Any, e: Any, z: Any, c: Any) -> Any:
        n, y, x = t.place((i, j), tile)
        return times(b, e, lambda r: image(n, y * t.m + r, x * t.m + z, c))

    columns = te.compute((*t.blocks, t.block, size, size, lanes), column, name=f"{name}_columns")
    return te.compute(
        (*t.blocks, size, size, t.block, lanes),
        lambda i, j, e, f, tile, c: times(b, f, lambda z: columns(i, j, tile, e, z, c)),
        name=f"{name}_inputs",
    )


def _sums(inputs: Tensor, weight: Tensor, channels: int, name: str) -> Tensor:
    """The products of every element of the tiles, summed over the input channels."""
    *blocks, size, _, tiles, _ = (int(extent) for extent in inputs.shape)
    k = te.reduce_axis((0, channels), name="k")
    return te.compute(
        (*blocks, int(weight.shape[2]), size, size, tiles, LANES),
        lambda i, j, o, e, f, tile, lane: te.sum(
            inputs(i, j, e, f, tile, k) * weight(e, f, o, k, lane), axis=k
        ),
        name=name,
    )


def _outputs(sums: Tensor, t: Tiling, name: str) -> Tensor:
    """A^T sums A: the pixels of every tile."""
    _, _, a = matrices(t.m, t.window)
    out_blocks, m = int(sums.shape[2]), t.m
    rows = te.compute(
        (*t.blocks, out_blocks, t.block, m, t.size, LANES),
        lambda i, j, o, tile, y, f, lane: times(a, y, lambda e: sums(i, j, o, e, f, tile, lane)),
        name=f"{name}_rows",
    )

    def pixel(i: Any, j: Any, o: Any, y: Any, x: Any, lane: Any) -> Any:
        tile = tir.floordiv(y, m) * t.along + tir.floordiv(x, m)
        inside = tir.floormod(y, m)
        return times(a, tir.floormod(x, m), lambda f: rows(i, j, o, tile, inside, f, lane))

    shape = (*t.blocks, out_blocks, t.images * t.rows * m, t.along * m, LANES)
    return te.compute(shape, pixel, name=f"{name}_pixels")


def _forms(
    image: Sequence[int], kernel: Sequence[int], attrs: Any, out: Sequence[int]
) -> list[int]:
    """0 and the m of every F(m, r) that a convolution can be."""
    window = kernel[2]
    plain = window in FORMS and kernel[3] == window and attrs["groups"] == 1
    plain = plain and tuple(attrs["strides"]) == tuple(attrs["dilation"]) == (1, 1)
    allowed = os.environ.get("SELFBYOC_WINOGRAD", "1") != "0"
    return [0, *FORMS[window]] if allowed and plain and min(image[1], out[1]) >= LANES else [0]


@dataclass(frozen=True)
class Cost:
    """The time of a convolution, in multiplications a pair of channels."""

    products: float
    reading: float  # of the weights, while it multiplies
    rest: float

    @property
    def time(self) -> float:
        """In all."""
        return max(self.products, self.reading) + self.rest


def _costs(
    image: Sequence[int], kernel: Sequence[int], attrs: Any, out: Sequence[int]
) -> dict[int, Cost]:
    """Of every F(m, r) that a convolution can be, by m; the direct one's is at 0."""
    window = kernel[2]
    sides = 1 / image[1] + 1 / out[1]  # what is done once a channel, for each pair of channels

    def cost(m: int) -> Cost:
        if m == 0:
            size, units, product, each = window**2, out[0] * math.prod(out[2:]), DIRECT, PIXEL
        else:
            units, product, each = cut(out, m, window).work, 1.0, EACH[m, window]
            size = (m + window - 1) ** 2
        return Cost(product * units * size, 4 * size * BYTE, units * each * sides)

    return {m: cost(m) for m in _forms(image, kernel, attrs, out)}


def choose(image: Sequence[int], kernel: Sequence[int], attrs: Any, out: Sequence[int]) -> int:
    """The m of the F(m, r) that takes the least time; 0 where it is the direct convolution."""
    costs = _costs(image, kernel, attrs, out)
    best = min(costs, key=lambda m: costs[m].time)
    return best if costs[0].time > GAIN * costs[best].time else 0


def near(image: Sequence[int], kernel: Sequence[int], attrs: Any, out: Sequence[int]) -> list[int]:
    """That m, and others that may be as fast.

    None that waits for its weights: to a loop over one kernel, whose weights are in the last cache,
    it would look faster than it is in a model.
    """
    usual, costs = choose(image, kernel, attrs, out), _costs(image, kernel, attrs, out)
    least = min(cost.time for cost in costs.values())
    good = [m for m, c in costs.items() if c.reading <= c.products and c.time < UNSURE * least]
    return sorted({usual, *good})
