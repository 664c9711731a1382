"""Images as flat lanes: where the pixels of a window over a padded image lie.

The image is copied once into rows of `pitch` columns, padded; a row's left padding serves as the
right one of the row above. Then output pixel (y, x) is lane y * pitch + x, and a tap of the window
is a constant distance: vectors are full whatever the width, across the ends of rows. The lanes
between two rows compute what nobody reads. A stride splits the copy by phase, so that neighbouring
outputs read neighbouring addresses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...._tvm import te, tir
from ....language.decisions import choose
from ...steps.candidates import best

LANES = 32  # pixels of a tile: two AVX-512 vectors, or two tiles of two AVX2 ones
# Of one task: its results, 16 x 832 floats, about fill L1 until they are stored. More rows leave
# fewer lanes without use (conv2d 64x56x56, one core: 512 lanes 1.09 ms, 832 0.97, 1700 0.98).
MOST_LANES = 832
# Of a pool's task: 1 KB, which TVM keeps on the stack. 192x28x28, 3x3 at stride 1: 39.5 us
# with 832 lanes, 22 with 203; 64x27x27 13.8 and 8.2 (two cores of Zen 5, Nov 2026).
POOL_LANES = 256
LEAST_TASKS = 32  # of an image, where its rows can be split: even enough on some eight cores

Tensor = Any
Pair = Sequence[int]


@dataclass(frozen=True)
class Plan:
    """Where the lanes of a window over an image lie. Pairs are (vertical, horizontal)."""

    height: int  # of the output
    width: int
    pitch: int  # columns of a padded row, for each phase
    reach: tuple[
        int, int
    ]  # from the first to the last tap of a window, in rows and columns of a phase
    phases: tuple[int, ...]
    rows: int  # output rows of one task
    lanes: int  # of one tile
    tiles: int  # tiles of one task
    is_whole: bool  # rows lie as in the image: no padding, no stride
    copies: bool  # whether the image is copied; not where it lies as wanted already

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


def plan(
    image: Pair, out: Pair, window: Pair, attrs: Any, tasks: int, most: int = MOST_LANES
) -> Plan:
    """Choose pitch, task and tile for a window over an image of which there are `tasks`."""
    strides, dilation, pads = attrs["strides"], attrs["dilation"], attrs["padding"]
    down, along = ((window[n] - 1) * dilation[n] // strides[n] for n in (0, 1))
    phases = tuple(1 if window[n] == 1 else strides[n] for n in (0, 1))
    pitch = _pitch(image[1], out[1], along, strides[1], phases[1], pads[1])
    is_whole = tuple(strides) == (1, 1) and not any(pads) and pitch == image[1]
    whole = Plan(out[0], out[1], pitch, (down, along), phases, out[0], LANES, 1, is_whole, True)
    return of_rows(whole, _rows(out, pitch, tasks, most))


def of_rows(p: Plan, rows: int) -> Plan:
    """A plan with tasks of so many rows."""
    used = (rows - 1) * p.pitch + p.width
    lanes = min(LANES, -(-used // 16) * 16)
    made = replace(p, rows=rows, lanes=lanes, tiles=-(-used // lanes))
    image = (p.height + p.reach[0]) * p.pitch  # where it is read as it lies
    return replace(made, copies=not p.is_whole or made.length > image)


def decided(p: Plan, name: str) -> Plan:
    """A plan with the rows that are chosen for the tasks of the op `name`."""
    others = [of_rows(p, rows) for rows in range(1, p.height + 1)]
    fitting = [o for o in others if o.rows * o.pitch <= 2 * MOST_LANES and o.lanes == p.lanes]
    better = sorted(fitting, key=lambda o: -o.use)
    sizes = sorted(best((o.rows for o in better), p.rows, 4))
    return of_rows(p, choose(f"{name}.rows", sizes, p.rows))


def _pitch(width: int, out: int, reach: int, stride: int, phases: int, left: int) -> int:
    """The fewest columns between rows such that what a window reads behind a row's end is zero."""
    shared = max(out, -(-(left + width) // stride))
    behind = out + reach - shared  # columns read in the next row
    zero = behind <= 0 or (behind - 1) * stride + phases - 1 < left
    return shared if zero else out + reach


def _rows(out: Pair, pitch: int, tasks: int, most: int) -> int:
    """Rows of a task: few lanes that nobody reads, then enough tasks for a few cores."""

    def waste(rows: int) -> float:
        used = (rows - 1) * pitch + out[1]
        return -(-out[0] // rows) * -(-used // LANES) / (out[0] * out[1])

    fitting = [r for r in range(1, out[0] + 1) if r * pitch <= most] or [1]
    least = min(map(waste, fitting))
    good = [r for r in fitting if waste(r) <= least * 1.03]
    parallel = [r for r in good if -(-out[0] // r) * tasks >= LEAST_TASKS]
    return max(parallel) if parallel else min(good)


def padded(x: Tensor, p: Plan, attrs: Any, fill: Any, name: str) -> Tensor:
    """[N, C, H, W] -> [N, C, phase, lanes]: the padded copy."""
    (top, left), (sh, sw) = attrs["padding"][:2], attrs["strides"]
    batch, channels, height, width = (int(extent) for extent in x.shape)

    def element(n: Any, c: Any, f: Any, lane: Any) -> Any:
        row = tir.floordiv(lane, p.pitch) * sh + tir.floordiv(f, p.phases[1]) - top
        column = tir.floormod(lane, p.pitch) * sw + tir.floormod(f, p.phases[1]) - left
        inside = tir.all(row >= 0, row < height, column >= 0, column < width)
        return tir.if_then_else(inside, x(n, c, row, column), fill)

    shape = (batch, channels, math.prod(p.phases), p.length)
    return te.compute(shape, element, name=name)


def reader(x: Tensor, p: Plan, attrs: Any, fill: Any, name: str) -> Any:
    """Read the image at (n, channel, lane) under tap (y, x) of the window; `fill` is outside."""
    if not p.copies:
        width = int(x.shape[3])
        dil = attrs["dilation"]

        def direct(n: Any, c: Any, lane: Any, y: Any, z: Any) -> Any:
            at = lane + y * dil[0] * p.pitch + z * dil[1]
            return x(n, c, tir.floordiv(at, width), tir.floormod(at, width))

        return direct
    copy = padded(x, p, attrs, fill, f"{name}_pad")
    (sh, sw), (dh, dw) = attrs["strides"], attrs["dilation"]

    def read(n: Any, c: Any, lane: Any, y: Any, z: Any) -> Any:
        phase = tir.floormod(y * dh, sh) * p.phases[1] + tir.floormod(z * dw, sw)
        at = lane + tir.floordiv(y * dh, sh) * p.pitch + tir.floordiv(z * dw, sw)
        return copy(n, c, phase, at)

    return read


def lane_of(p: Plan, y: Any, z: Any) -> tuple[Any, Any]:
    """Tile and lane, within its task, of output pixel (y, z)."""
    lane = tir.floormod(y, p.rows) * p.pitch + z
    return tir.floordiv(lane, p.lanes), tir.floormod(lane, p.lanes)
