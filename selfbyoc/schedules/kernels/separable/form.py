"""Where the windows of a depthwise convolution lie, and rows of pixels cut into register tiles."""

from __future__ import annotations

from dataclasses import dataclass

from ....codegen.info.ops import OpView
from ....tvm import tir
from ....tvm.types import PrimExpr
from ...steps.faults import Faults, outside, undivided, unlike
from ...steps.tensors import split_index
from ..conv.windows import Windows


@dataclass(frozen=True)
class Form(Windows):
    """Where the windows of a depthwise convolution lie. Pairs are (vertical, horizontal)."""

    rows: int  # output rows of a chunk
    padded: bool = False  # whether a frame has the rows of padding too: else the windows mask them
    together: int = 1  # neighbouring windows that are computed together

    def faults(self, depth: OpView) -> Faults:
        """Of where the windows of a depthwise convolution lie."""
        image, window, out = depth.inputs[0][0], depth.inputs[1][0], depth.outputs[0][0]
        yield from self.misplaced(image[2:], out[2:], window[2:], depth.attrs)
        yield from outside("rows of a chunk", self.rows, 1, self.out[0])
        yield from outside("windows together", self.together, 1, self.out[1])
        if self.chunks > 1 and not self.padded:
            yield f"{self.chunks} chunks of rows without padding of their own"

    @property
    def chunks(self) -> int:
        """Chunks of rows."""
        return -(-self.out[0] // self.rows)

    @property
    def pitch(self) -> int:
        """Columns of a row of the result, with those that are computed and not read."""
        return -(-self.out[1] // self.together) * self.together

    @property
    def high(self) -> int:
        """Padded rows under a chunk's windows."""
        return (self.rows - 1) * self.strides[0] + self.reach(0) + 1

    @property
    def framed(self) -> int:
        """Rows that a chunk keeps."""
        return self.high if self.padded else self.image[0]

    def row_of(self, chunk: PrimExpr, q: PrimExpr) -> PrimExpr:
        """The image's row that is row `q` of a chunk's frame, which may be outside."""
        if not self.padded:
            return q
        return chunk * (self.rows * self.strides[0]) + q - self.before[0]

    def inside(self, chunk: PrimExpr, q: PrimExpr) -> PrimExpr:
        """The same; rows outside repeat the image's border."""
        row = self.row_of(chunk, q)
        return tir.Max(tir.Min(row, self.image[0] - 1), 0) if self.padded else row

    def or_padding(self, chunk: PrimExpr, q: PrimExpr, value: PrimExpr) -> PrimExpr:
        """What row `q` of a chunk's frame holds: zeros where it is outside of the image."""
        last = (self.chunks * self.rows - 1) * self.strides[0] + self.reach(0)
        if not self.padded or (not self.before[0] and last < self.image[0]):
            return value
        inside = tir.EQ(self.inside(chunk, q), self.row_of(chunk, q))
        return tir.Select(inside, value, tir.const(0, "float32"))

    def under_row(self, y: PrimExpr, ky: PrimExpr) -> tuple[PrimExpr, list[PrimExpr]]:
        """The frame's row under row `ky` of a window, and what tells that it is inside of it."""
        row = y * self.strides[0] + ky * self.dilation[0]
        if self.padded:
            return row, []
        return self._clamped(row - self.before[0], 0, self.rows)

    def under_column(self, x: PrimExpr, kx: PrimExpr) -> tuple[PrimExpr, list[PrimExpr]]:
        """The image's column under column `kx` of a window, and what tells that it is inside."""
        column = x * self.strides[1] + kx * self.dilation[1] - self.before[1]
        return self._clamped(column, 1, self.pitch)

    def _clamped(self, place: PrimExpr, dim: int, windows: int) -> tuple[PrimExpr, list[PrimExpr]]:
        """That is "clamped is the same", from which TVM does not conclude that it need not clamp: a
        read outside, though it is masked, is undefined where LLVM knows the buffer's size.
        """
        index = place
        last = (windows - 1) * self.strides[dim] + self.reach(dim)
        if last - self.before[dim] >= self.image[dim]:
            index = tir.Min(index, self.image[dim] - 1)
        if self.before[dim]:
            index = tir.Max(index, 0)
        return index, [] if index is place else [tir.EQ(index, place)]


@dataclass(frozen=True)
class Pixels:
    """Rows of pixels in bands of one or more rows; a band is one flat run, cut into tiles."""

    rows: int
    width: int
    band: int  # rows of a band
    tile: int  # pixels of a tile

    def faults(self, rows: int, width: int) -> Faults:
        """Of so many rows of pixels."""
        yield from unlike("rows and columns", (self.rows, self.width), (rows, width))
        yield from undivided("rows of a band", self.rows, self.band)
        yield from outside("pixels of a tile", self.tile, 1, self.band * self.width)

    @property
    def bands(self) -> int:
        """Bands in all."""
        return self.rows // self.band

    @property
    def tiles(self) -> int:
        """Tiles of a band; the last one may hang over its end."""
        return -(-self.band * self.width // self.tile)

    @property
    def use(self) -> float:
        """The share of the tiles' pixels that there are."""
        return self.band * self.width / (self.tiles * self.tile)

    def place(self, row: PrimExpr, column: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """A pixel's band, and which pixel of the band it is."""
        if self.band == 1:
            return row, column
        if self.bands == 1:
            return 0, row * self.width + column
        at = tir.floormod(row, self.band) * self.width + column
        return tir.floordiv(row, self.band), at

    def where(self, row: PrimExpr, column: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
        """Band, tile and pixel of the tile that hold a pixel."""
        band, at = self.place(row, column)
        return band, *split_index(at, self.tile)

    def pixel(self, band: PrimExpr, tile: PrimExpr, i: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """Row and column of a tile's pixel; those that hang over repeat the band's last one."""
        at = tile * self.tile + i
        if self.tiles * self.tile > self.band * self.width:
            at = tir.Min(at, self.band * self.width - 1)
        if self.band == 1:
            return band, at
        row, column = split_index(at, self.width)
        return band * self.band + row, column
