"""What the windows of a depthwise convolution read, by blocks of channels: the image, or what a
pointwise or a network's first convolution makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._tvm import te, tir
from ..conv.direct import extents
from .form import Form, tile_of
from .layers import LANES, Layer, is_pointwise

Tensor = Any


def expanded(x: Tensor, layer: Layer, f: Form) -> Tensor:
    """The products of the rows under a chunk's windows, in tiles of a row: pointwise, or of a
    network's first convolution.
    """
    width, tile = f.image[1], tile_of(f.image[1])
    tiles = -(-width // tile)
    read, axes = (_pixels if is_pointwise(layer.conv) else _windows)(x, layer, f)

    def element(n: Any, chunk: Any, b: Any, q: Any, t: Any, i: Any, lane: Any) -> Any:
        # Columns behind the image repeat its border: what is computed is not used.
        column = t * tile + i
        column = column if tiles * tile == width else tir.Min(column, width - 1)
        rc, *window = axes
        weight = layer.weight(b, rc, *(window or (0, 0)), lane)
        return te.sum(read(n, chunk, q, column) * weight, axis=axes)

    shape = (int(x.shape[0]), f.chunks, int(layer.weight.shape[0]), f.framed, tiles, tile, LANES)
    return te.compute(shape, element, name=f"{layer.conv.name}_sums")


def _pixels(x: Tensor, layer: Layer, f: Form) -> tuple[Any, list[Any]]:
    """What a product of a pixel reads at (n, chunk, frame's row, column), and its axis."""
    rc = te.reduce_axis((0, int(x.shape[1])), name="rc")

    def read(n: Any, chunk: Any, q: Any, column: Any) -> Any:
        return x(n, rc, _inside(f, chunk, q), column)

    return read, [rc]


def _inside(f: Form, chunk: Any, q: Any) -> Any:
    """The image's row that is row `q` of a chunk's frame; rows outside repeat its border."""
    return q if f.chunks == 1 else tir.Max(tir.Min(f.row_of(chunk, q), f.image[0] - 1), 0)


def framed(read: Callable[..., Any], batch: int, blocks: int, f: Form, name: str) -> Tensor:
    """The rows under a chunk's windows in blocks of channels; `read` gives their elements.

    One chunk has the image's rows alone. What others reach outside of it repeats its border.
    """
    tile = tile_of(f.image[1])
    shape = (batch, f.chunks, blocks, f.framed, -(-f.image[1] // tile) * tile, LANES)
    return te.compute(shape, read, name=f"{name}_framed")


def from_sums(sums: Tensor, layer: Layer, f: Form) -> Callable[..., Any]:
    """Read the expanded image out of its tiles, activated."""
    tile = tile_of(f.image[1])

    def read(n: Any, chunk: Any, b: Any, q: Any, column: Any, lane: Any) -> Any:
        at = (tir.floordiv(column, tile), tir.floormod(column, tile))
        return layer.applied(sums(n, chunk, b, q, *at, lane), b * LANES + lane)

    return read


def from_image(x: Tensor, f: Form) -> Callable[..., Any]:
    """Read an image; channels and columns behind its last one repeat it, and are not read."""
    _, channels, _, wide = extents(x)

    def read(n: Any, chunk: Any, b: Any, q: Any, column: Any, lane: Any) -> Any:
        channel = b * LANES + lane
        channel = channel if channels % LANES == 0 else tir.Min(channel, channels - 1)
        column = column if wide % tile_of(wide) == 0 else tir.Min(column, wide - 1)
        return x(n, channel, _inside(f, chunk, q), column)

    return read


def _windows(x: Tensor, layer: Layer, f: Form) -> tuple[Any, list[Any]]:
    """What a product of a window reads at (n, chunk, frame's row, column), and its axes."""
    attrs, window = layer.conv.attrs, layer.conv.inputs[1].shape[2:]
    (down, along), (dh, dw), left = attrs["strides"], attrs["dilation"], attrs["padding"][1]
    rows = _rows(x, layer, f)
    sizes = {"rc": int(x.shape[1]), "ry": window[0], "rx": window[1]}
    axes = [te.reduce_axis((0, size), name=name) for name, size in sizes.items()]
    rc, ry, rx = axes

    def read(n: Any, chunk: Any, q: Any, column: Any) -> Any:
        at = column * along + rx * dw - left + _before(left)
        vector, lane = tir.floordiv(at, LANES), tir.floormod(at, LANES)
        return rows(n, chunk, rc, q * down + ry * dh, vector, lane)

    return read, axes


def _rows(x: Tensor, layer: Layer, f: Form) -> Tensor:
    """The rows under a chunk in vectors, zeros around the image: before it whole vectors of them,
    so that vectors are inside or not.
    """
    batch, channels, high, wide = extents(x)
    attrs, window = layer.conv.attrs, layer.conv.inputs[1].shape[2:]
    (down, along), (dh, dw), (top, left) = attrs["strides"], attrs["dilation"], attrs["padding"][:2]
    end = (f.image[1] - 1) * along + (window[1] - 1) * dw - left + 1
    shape = (
        batch,
        f.chunks,
        channels,
        (f.framed - 1) * down + (window[0] - 1) * dh + 1,
        -(-(end + _before(left)) // LANES),
        LANES,
    )

    def element(n: Any, chunk: Any, c: Any, r: Any, v: Any, lane: Any) -> Any:
        row, vector = f.row_of(chunk, 0) * down + r - top, v - _before(left) // LANES
        column = vector * LANES + lane
        behind = vector < wide // LANES if wide % LANES == 0 else column < wide
        inside = tir.all(row >= 0, row < high, vector >= 0, behind)
        return tir.if_then_else(inside, x(n, c, row, column), tir.const(0, "float32"))

    return te.compute(shape, element, name=f"{layer.conv.name}_rows")


def _before(left: int) -> int:
    """Columns of zeros before an image, of which `left` are read: whole vectors."""
    return -(-left // LANES) * LANES
