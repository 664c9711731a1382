"""Images as flat lanes: where the pixels of a window over a padded image lie.

The image is copied once into rows of `pitch` columns, padded; a row's left padding serves as the
right one of the row above. Then output pixel (y, x) is lane y * pitch + x, and a tap of the window
is a constant distance: vectors are full whatever the width, across the ends of rows. The lanes
between two rows compute what nobody reads. A stride splits the copy by phase, so that neighbouring
outputs read neighbouring addresses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ....tvm import te, tir
from ....tvm.types import Attrs, PrimExpr, Tensor
from ...steps.faults import Faults, outside, unlike
from ...steps.tensors import extents, split_index
from .layer import Layer

Pair = Sequence[int]
Reader = Callable[[PrimExpr, PrimExpr, PrimExpr, PrimExpr, PrimExpr], PrimExpr]


@dataclass(frozen=True)
class Lanes:
    """Where the lanes of a window over an image lie. Pairs are (vertical, horizontal)."""

    height: int  # of the output
    width: int
    pitch: int  # columns of a padded row, for each phase
    reach: tuple[int, int]  # from the first to the last tap, in rows and columns of a phase
    phases: tuple[int, ...]
    is_whole: bool  # rows lie as in the image: no padding, no stride
    rows: int = 1  # output rows of one task
    lanes: int = 1  # of one tile
    tiles: int = 1  # tiles of one task
    copies: bool = True  # whether the image is copied; not where it lies as wanted already

    def __str__(self) -> str:
        return f"{self.rows} rows a task, {self.tiles} tiles of {self.lanes} pixels"

    @property
    def _of_image(self) -> tuple[int, int, int, tuple[int, int], tuple[int, ...], bool]:
        """What does not follow from tasks and tiles."""
        return self.height, self.width, self.pitch, self.reach, self.phases, self.is_whole

    @property
    def chunks(self) -> int:
        """Tasks that the rows of an image are split into."""
        return -(-self.height // self.rows)

    @property
    def use(self) -> float:
        """The share of the lanes that hold pixels of the result."""
        return self.height * self.width / (self.chunks * self.tiles * self.lanes)

    @property
    def length(self) -> int:
        """Lanes of a padded image that tiles may read."""
        last = (self.chunks - 1) * self.rows * self.pitch + self.tiles * self.lanes - 1
        last += self.reach[0] * self.pitch + self.reach[1]
        return -(-(last + 1) // self.pitch) * self.pitch

    def faults(self, layer: Layer, tile: int) -> Faults:
        """Of tiles of so many lanes at most: pixels left out, or a tap that meets the next row."""
        same = lanes_of(layer.image[2:], layer.out[2:], layer.window, layer.attrs)
        yield from unlike("the windows' lanes", self._of_image, same._of_image)
        yield from outside("rows of a task", self.rows, 1, self.height)
        yield from outside("lanes", self.lanes, 1, tile)
        used = (self.rows - 1) * self.pitch + self.width
        yield from outside("tiles of a task", self.tiles, *[-(-used // self.lanes)] * 2)
        (_, step), (_, apart) = layer.attrs["strides"], layer.attrs["dilation"]
        left, wide = layer.attrs["padding"][1], layer.image[3]
        for tap in range(layer.window[1]):  # of the last pixel of a row
            column = (self.width - 1) * step + tap * apart
            wrapped = column // step - self.pitch
            if wrapped < 0:
                continue
            met = wrapped * step + column % step - left
            if column - left < wide or met >= 0:
                yield f"tap {tap} of the last pixel meets column {met} of the next row"
        image = (self.height + self.reach[0]) * self.pitch
        if not self.copies and (self.length > image or self.pitch != wide):
            yield f"{self.length} lanes of an image of {image} that is not copied"

    def cut(self, rows: int, tile: int, vector: int) -> tuple[int, int]:
        """Lanes of a tile, of so many at most, and tiles of a task of so many rows."""
        used = (rows - 1) * self.pitch + self.width
        lanes = min(tile, -(-used // vector) * vector)
        return lanes, -(-used // lanes)

    def of_rows(self, rows: int, tile: int, vector: int) -> Lanes:
        """With tasks of so many rows, in tiles of so many lanes at most."""
        made = Lanes(*self._of_image, rows, *self.cut(rows, tile, vector))
        image = (self.height + self.reach[0]) * self.pitch  # where it is read as it lies
        return replace(made, copies=False) if self.is_whole and made.length <= image else made


def lanes_of(image: Pair, out: Pair, window: Pair, attrs: Attrs) -> Lanes:
    """The lanes of a window over an image, the tasks not chosen."""
    strides, dilation, pads = attrs["strides"], attrs["dilation"], attrs["padding"]
    down, along = ((window[n] - 1) * dilation[n] // strides[n] for n in (0, 1))
    phases = tuple(1 if window[n] == 1 else strides[n] for n in (0, 1))
    pitch = _pitch(image[1], out[1], along, strides[1], phases[1], pads[1])
    is_whole = tuple(strides) == (1, 1) and not any(pads) and pitch == image[1]
    return Lanes(out[0], out[1], pitch, (down, along), phases, is_whole)


def _pitch(width: int, out: int, reach: int, stride: int, phases: int, left: int) -> int:
    """The fewest columns between rows such that what a window reads after a row's end is zero."""
    shared = max(out, -(-(left + width) // stride))
    after = out + reach - shared  # columns read in the next row
    zero = after <= 0 or (after - 1) * stride + phases - 1 < left
    return shared if zero else out + reach


@lru_cache(maxsize=4096)  # a convolution asks for every register tile, packing and compute both
def tasks_of_rows(
    p: Lanes, tile: int, vector: int, most: int, images: int, cores: int
) -> tuple[int, ...]:
    """The rows of tasks of at most so many lanes, in the order of the vectors that the core with
    most tasks computes; of equal ones the most rows.
    """
    times = {}
    for rows in range(1, max(1, min(p.height, most // p.pitch)) + 1):
        lanes, tiles = p.cut(rows, tile, vector)
        times[rows] = -(-images * -(-p.height // rows) // cores) * tiles * lanes
    # 3% are within the error of any such model; larger tasks stream their weights less often.
    least = 1.03 * min(times.values())
    return tuple(sorted(times, key=lambda rows: (times[rows] > least, -rows)))


def padded(x: Tensor, p: Lanes, attrs: Attrs, fill: PrimExpr, name: str) -> Tensor:
    """[N, C, H, W] -> [N, C, phase, lanes]: the padded copy."""
    (top, left), (sh, sw) = attrs["padding"][:2], attrs["strides"]
    batch, channels, height, width = extents(x)

    def element(n: PrimExpr, c: PrimExpr, f: PrimExpr, lane: PrimExpr) -> PrimExpr:
        row = tir.floordiv(lane, p.pitch) * sh + tir.floordiv(f, p.phases[1]) - top
        column = tir.floormod(lane, p.pitch) * sw + tir.floormod(f, p.phases[1]) - left
        inside = tir.all(row >= 0, row < height, column >= 0, column < width)
        return tir.if_then_else(inside, x(n, c, row, column), fill)

    shape = (batch, channels, math.prod(p.phases), p.length)
    return te.compute(shape, element, name=name)


def reader(
    x: Tensor, p: Lanes, attrs: Attrs, fill: PrimExpr, name: str
) -> tuple[Reader, Tensor | None]:
    """What reads the image at (n, channel, lane) under tap (y, x) of the window, and the padded
    copy that it reads, if any; `fill` is outside.
    """
    (sh, sw), (dh, dw) = attrs["strides"], attrs["dilation"]
    if not p.copies:
        width = int(x.shape[3])

        def direct(n: PrimExpr, c: PrimExpr, lane: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
            at = lane + y * dh * p.pitch + z * dw
            return x(n, c, *split_index(at, width))

        return direct, None
    copy = padded(x, p, attrs, fill, f"{name}_pad")

    def read(n: PrimExpr, c: PrimExpr, lane: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        phase = tir.floormod(y * dh, sh) * p.phases[1] + tir.floormod(z * dw, sw)
        at = lane + tir.floordiv(y * dh, sh) * p.pitch + tir.floordiv(z * dw, sw)
        return copy(n, c, phase, at)

    return read, copy


def lane_of(p: Lanes, y: PrimExpr, z: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Tile and lane, within its task, of output pixel (y, z)."""
    lane = tir.floormod(y, p.rows) * p.pitch + z
    return split_index(lane, p.lanes)
