"""A depthwise convolution and the pointwise ones around it by blocks of channels, as te.compute.

    x [C, H, W] -> sums [E/16, rows, columns, 16] -> framed, with zeros around -> the windows'
    lanes [E/16, rows, columns, 16] -> sums [rows, O/16, columns, 16] -> y [O, H, W]

Lanes are channels: windows, strides and borders then move whole vectors. Each stage has an axis of
chunks of rows, so that the schedule may hold one chunk of it, and of that some blocks of channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from .._tvm import te, tir
from .direct import extents
from .machine import Machine
from .separable_layers import LANES, Layer

# Most pixels of a register tile: of 16 channels each, or half of them of two or three blocks.
TILE = 14
EXPANDED = 3  # blocks of the expanded image that exist at a time, at most

Tensor = Any


@dataclass(frozen=True)
class Form:
    """Where the windows of a depthwise convolution lie. Pairs are (vertical, horizontal)."""

    image: Sequence[int]
    out: Sequence[int]
    window: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]
    before: Sequence[int]  # padding above and on the left
    rows: int  # output rows of a chunk

    @property
    def chunks(self) -> int:
        """Chunks of rows."""
        return -(-self.out[0] // self.rows)

    @property
    def tile(self) -> int:
        """Pixels of a tile of the result."""
        return tile_of(self.out[1])

    @property
    def high(self) -> int:
        """Padded rows under a chunk's windows."""
        return (self.rows - 1) * self.strides[0] + (self.window[0] - 1) * self.dilation[0] + 1

    @property
    def framed(self) -> int:
        """Rows of the image that a chunk keeps."""
        return self.image[0] if self.chunks == 1 else self.high

    def under(self, dim: int, at: Any, tap: int) -> tuple[Any, list[Any]]:
        """The image's row or column under a tap of the window `at`, clamped, and what tells that it
        was inside.
        """
        offset = tap * self.dilation[dim] - self.before[dim]
        place = at * self.strides[dim] + offset
        last = (-(-self.out[dim] // self._step(dim)) * self._step(dim) - 1) * self.strides[dim]
        index, inside = place, []
        if last + offset >= self.image[dim]:
            index = tir.Min(index, self.image[dim] - 1)
            inside.append(place < self.image[dim])
        if offset < 0:
            index = tir.Max(index, 0)
            inside.append(place >= 0)
        return index, inside

    def _step(self, dim: int) -> int:
        """Windows that are computed together: behind the last one, others may be."""
        return (self.rows, self.tile)[dim]


def tile_of(width: int) -> int:
    """Pixels of a register tile: few that hang over the end of a row, few tiles."""
    return min(range(1, min(width, TILE) + 1), key=lambda t: -(-width // t) * (t + 1))


def expanded(x: Tensor, layer: Layer, f: Form) -> Tensor:
    """The pointwise products of the rows under a chunk's windows, in tiles of a row."""
    width, tile = f.image[1], tile_of(f.image[1])
    tiles = -(-width // tile)
    rc = te.reduce_axis((0, int(x.shape[1])), name="rc")

    def element(n: Any, chunk: Any, b: Any, q: Any, t: Any, i: Any, lane: Any) -> Any:
        # Rows and columns outside of the image repeat its border: what is computed is not used.
        row = _row(f, chunk, q)
        row = row if f.chunks == 1 else tir.Max(tir.Min(row, f.image[0] - 1), 0)
        column = t * tile + i
        column = column if tiles * tile == width else tir.Min(column, width - 1)
        return te.sum(x(n, rc, row, column) * layer.weight(b, rc, 0, 0, lane), axis=[rc])

    shape = (int(x.shape[0]), f.chunks, int(layer.weight.shape[0]), f.framed, tiles, tile, LANES)
    return te.compute(shape, element, name=f"{layer.conv.name}_sums")


def _row(f: Form, chunk: Any, q: Any) -> Any:
    """The image's row that is row `q` under a chunk's windows."""
    return q if f.chunks == 1 else chunk * (f.rows * f.strides[0]) + q - f.before[0]


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
    _, channels, high, wide = extents(x)

    def read(n: Any, chunk: Any, b: Any, q: Any, column: Any, lane: Any) -> Any:
        channel, row = b * LANES + lane, _row(f, chunk, q)
        channel = channel if channels % LANES == 0 else tir.Min(channel, channels - 1)
        row = row if f.chunks == 1 else tir.Max(tir.Min(row, high - 1), 0)
        column = column if wide % tile_of(wide) == 0 else tir.Min(column, wide - 1)
        return x(n, channel, row, column)

    return read


def windows(image: Tensor, layer: Layer, f: Form) -> Tensor:
    """The depthwise convolution, each window written out: nothing is left to initialise."""
    taps = [(ky, kx) for ky in range(f.window[0]) for kx in range(f.window[1])]

    def element(n: Any, chunk: Any, b: Any, y: Any, t: Any, i: Any, lane: Any) -> Any:
        def term(ky: int, kx: int) -> Any:
            row, inside = f.under(0, chunk * f.rows + y, ky)
            row = row if f.chunks == 1 else y * f.strides[0] + ky * f.dilation[0]
            column, along = f.under(1, t * f.tile + i, kx)
            data = image(n, chunk, b, row, column, lane)
            if inside or along:
                data = tir.Select(tir.all(*inside, *along), data, tir.const(0, "float32"))
            return data * layer.weight(b, 0, ky, kx, lane)

        total = term(*taps[0])
        for tap in taps[1:]:
            total = total + term(*tap)
        return layer.applied(total, b * LANES + lane)

    shape = (*extents(image)[:3], f.rows, -(-f.out[1] // f.tile), f.tile, LANES)
    return te.compute(shape, element, name=f"{layer.conv.name}_lanes")


def projected(hidden: Tensor, layer: Layer) -> Tensor:
    """The pointwise products of the depthwise convolution's result."""
    steps = int(layer.weight.shape[1])
    fold = layer.channels // steps
    rc = te.reduce_axis((0, steps), name="rc")

    def element(n: Any, chunk: Any, y: Any, b: Any, t: Any, i: Any, lane: Any) -> Any:
        first = rc * fold
        channel = tir.floormod(first, LANES) + tir.floormod(lane, fold)
        data = hidden(n, chunk, tir.floordiv(first, LANES), y, t, i, channel)
        return te.sum(data * layer.weight(b, rc, 0, 0, lane), axis=[rc])

    batch, chunks, _, rows, tiles, tile, _ = extents(hidden)
    shape = (batch, chunks, rows, int(layer.weight.shape[0]), tiles, tile, LANES)
    return te.compute(shape, element, name=f"{layer.conv.name}_sums")


def result(sums: Tensor, layer: Layer, f: Form, residual: Tensor | None, name: str) -> Tensor:
    """The sums read out as an image, activated, and the residual added."""
    fold = layer.channels // int(layer.weight.shape[1])

    def element(n: Any, o: Any, y: Any, x: Any) -> Any:
        def part(j: int) -> Any:
            lane = o * fold + j
            where = (tir.floordiv(y, f.rows), tir.floormod(y, f.rows), tir.floordiv(lane, LANES))
            at = (tir.floordiv(x, f.tile), tir.floormod(x, f.tile), tir.floormod(lane, LANES))
            return sums(n, *where, *at)

        value = layer.applied(reduce(add, map(part, range(fold))), o)
        return value if residual is None else value + residual(n, o, y, x)

    return te.compute(layer.conv.outputs[0].shape, element, name=name)


def in_chunks(f: Form, batch: int, channels: int, cpu: Machine) -> Form:
    """All rows in one chunk where some blocks of them fit in the L2 well; else rows that fit and
    cost the least, counting the halo and the cores that idle.

    64x14x14 e384, 2 cores of Zen 5: 51 us in one chunk, 64 in chunks of 4 rows. 24x56x56 e144: in
    one chunk 175 us, of 28 rows 140, of 14 142, of 7 147, of 4 157.
    """

    def framed_bytes(rows: int) -> int:
        g = replace(f, rows=rows)
        return 4 * EXPANDED * LANES * g.high * f.image[1]

    def fits(rows: int) -> bool:
        hidden = 4 * rows * f.out[1] * channels
        return framed_bytes(rows) + hidden <= cpu.l2_bytes * 3 // 4

    def cost(rows: int) -> float:
        g = replace(f, rows=rows)
        rounds = -(-batch * g.chunks // cpu.cores)
        # Half of the work is on the rows under the windows, half on those of the result.
        return rounds * (g.high / f.strides[0] + rows)

    if framed_bytes(f.out[0]) <= cpu.l2_bytes // 4:
        return replace(f, rows=f.out[0])
    fitting = [rows for rows in range(1, f.out[0] + 1) if rows == 1 or fits(rows)]
    return replace(f, rows=min(fitting, key=cost))
