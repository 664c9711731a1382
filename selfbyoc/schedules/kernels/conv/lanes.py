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

from ...._tvm import te, tir
from ....language.types import Attrs, Expr, Tensor
from ...steps.tensors import extents

Pair = Sequence[int]
Reader = Callable[[Expr, Expr, Expr, Expr, Expr], Expr]


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

    def of_rows(self, rows: int, tile: int, vector: int) -> Lanes:
        """With tasks of so many rows, in tiles of so many lanes at most."""
        used = (rows - 1) * self.pitch + self.width
        lanes = min(tile, -(-used // vector) * vector)
        made = replace(self, rows=rows, lanes=lanes, tiles=-(-used // lanes))
        image = (self.height + self.reach[0]) * self.pitch  # where it is read as it lies
        return replace(made, copies=not self.is_whole or made.length > image)


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


def tasks_of_rows(
    p: Lanes, tile: int, vector: int, most: int, time: Callable[[Lanes], float]
) -> list[Lanes]:
    """The tasks of at most so many lanes, the least time first; of equal ones that of most rows."""
    sizes = [r for r in range(1, p.height + 1) if r == 1 or r * p.pitch <= most]
    found = [p.of_rows(rows, tile, vector) for rows in sizes]
    least = min(map(time, found))
    # 3% are within the error of any such model; larger tasks stream their weights less often.
    return sorted(found, key=lambda o: (time(o) > 1.03 * least, -o.rows))


def padded(x: Tensor, p: Lanes, attrs: Attrs, fill: Expr, name: str) -> Tensor:
    """[N, C, H, W] -> [N, C, phase, lanes]: the padded copy."""
    (top, left), (sh, sw) = attrs["padding"][:2], attrs["strides"]
    batch, channels, height, width = extents(x)

    def element(n: Expr, c: Expr, f: Expr, lane: Expr) -> Expr:
        row = tir.floordiv(lane, p.pitch) * sh + tir.floordiv(f, p.phases[1]) - top
        column = tir.floormod(lane, p.pitch) * sw + tir.floormod(f, p.phases[1]) - left
        inside = tir.all(row >= 0, row < height, column >= 0, column < width)
        return tir.if_then_else(inside, x(n, c, row, column), fill)

    shape = (batch, channels, math.prod(p.phases), p.length)
    return te.compute(shape, element, name=name)


def reader(
    x: Tensor, p: Lanes, attrs: Attrs, fill: Expr, name: str
) -> tuple[Reader, Tensor | None]:
    """What reads the image at (n, channel, lane) under tap (y, x) of the window, and the padded
    copy that it reads, if any; `fill` is outside.
    """
    (sh, sw), (dh, dw) = attrs["strides"], attrs["dilation"]
    if not p.copies:
        width = int(x.shape[3])

        def direct(n: Expr, c: Expr, lane: Expr, y: Expr, z: Expr) -> Expr:
            at = lane + y * dh * p.pitch + z * dw
            return x(n, c, tir.floordiv(at, width), tir.floormod(at, width))

        return direct, None
    copy = padded(x, p, attrs, fill, f"{name}_pad")

    def read(n: Expr, c: Expr, lane: Expr, y: Expr, z: Expr) -> Expr:
        phase = tir.floormod(y * dh, sh) * p.phases[1] + tir.floormod(z * dw, sw)
        at = lane + tir.floordiv(y * dh, sh) * p.pitch + tir.floordiv(z * dw, sw)
        return copy(n, c, phase, at)

    return read, copy


def lane_of(p: Lanes, y: Expr, z: Expr) -> tuple[Expr, Expr]:
    """Tile and lane, within its task, of output pixel (y, z)."""
    lane = tir.floormod(y, p.rows) * p.pitch + z
    return tir.floordiv(lane, p.lanes), tir.floormod(lane, p.lanes)
