"""1x1 convolutions: a matrix product over the flat pixels of the image in place, or under a stride
of a copy of those that it reads.

Tiles of 32 pixels may reach behind the end of a channel: they read the first pixels of the next
one, and nobody reads those sums. Only the last channel has none behind it. Its last tile is copied
(`last`), and the channel is added behind the sums of the others (`ends`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...._tvm import dtype_of, te, tir

LANES = 32  # pixels of a tile: two AVX-512 vectors, or two tiles of two AVX2 ones
LEAST_USE = 0.9  # of the lanes; below, channels are the better lanes (channel_lanes.py)

Tensor = Any


def use(x: Tensor, weight: Sequence[int], attrs: Any) -> float:
    """The share of the lanes that are pixels, or 0: it is no product over flat pixels, or its lanes
    reach behind the next channel. `weight` is the packed shape.
    """
    channels = int(x.shape[1])
    plain = tuple(weight[2:4]) == (1, 1) and not any(attrs["padding"]) and attrs["groups"] == 1
    pixels = math.prod(_pixels(x, attrs))
    plain = plain and dtype_of(x) == "float32" and channels > 1
    share = pixels / (tiles(pixels) * LANES)
    return share if plain and share >= 0.5 else 0


def _pixels(x: Tensor, attrs: Any) -> list[int]:
    """Height and width of the result."""
    return [-(-int(x.shape[n + 2]) // attrs["strides"][n]) for n in (0, 1)]


def read_pixels(x: Tensor, attrs: Any, name: str) -> Tensor:
    """The pixels of an image that a stride leaves, together."""
    down, along = attrs["strides"]
    if (down, along) == (1, 1):
        return x
    shape = (*x.shape[:2], *_pixels(x, attrs))
    return te.compute(shape, lambda n, c, y, z: x(n, c, y * down, z * along), name=f"{name}_pixels")


def tiles(pixels: int) -> int:
    """Tiles over the pixels of a channel."""
    return -(-pixels // LANES)


def convolution(x: Tensor, weight: Tensor, out: Sequence[int], name: str) -> Tensor:
    """The sums of all channels, and the result read out of them."""
    blocks, channels, _, _, rows = (int(extent) for extent in weight.shape)
    pixels, width = math.prod(out[2:]), out[3]
    whole = pixels % LANES == 0
    k = te.reduce_axis((0, channels if whole else channels - 1), name="k")

    def pixel(n: Any, c: Any, t: Any, lane: Any) -> Any:
        at = t * LANES + lane
        return x(n, c, tir.floordiv(at, width), tir.floormod(at, width))

    sums = te.compute(
        (out[0], blocks, rows, tiles(pixels), LANES),
        lambda n, b, r, t, lane: te.sum(pixel(n, k, t, lane) * weight(b, k, 0, 0, r), axis=k),
        name=f"{name}_product",
    )
    if not whole:
        sums = _with_last(sums, pixel, weight, pixels, name)

    def element(n: Any, o: Any, y: Any, z: Any) -> Any:
        block, at = (tir.floordiv(o, rows), tir.floormod(o, rows)), y * width + z
        return sums(n, *block, tir.floordiv(at, LANES), tir.floormod(at, LANES))

    return te.compute(out, element, name=name)


def _with_last(sums: Tensor, pixel: Any, weight: Tensor, pixels: int, name: str) -> Tensor:
    """The sums with the last channel's product, whose last tile is read from a copy."""
    channel, end = int(weight.shape[1]) - 1, tiles(pixels) - 1
    zero = tir.const(0, "float32")

    def inside(n: Any, lane: Any) -> Any:
        at = tir.Min(lane, pixels - end * LANES - 1)
        return tir.if_then_else(at < lane, zero, pixel(n, channel, end, at))

    last = te.compute((int(sums.shape[0]), LANES), inside, name=f"{name}_last")

    def element(n: Any, b: Any, r: Any, t: Any, lane: Any) -> Any:
        image = tir.if_then_else(t < end, pixel(n, channel, t, lane), last(n, lane))
        return sums(n, b, r, t, lane) + image * weight(b, channel, 0, 0, r)

    return te.compute(sums.shape, element, name=f"{name}_ends")
