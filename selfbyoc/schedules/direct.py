"""Direct convolution as a matrix product over flat pixels: the computes, and how constant weights are packed for them.

The image is copied once into rows of `pitch` columns, padded; a row's left padding serves as the right one of the row
above. Then output pixel (y, x) is lane y * pitch + x, and a tap of the window is a constant distance: vectors are full
whatever the width, across the ends of rows. The lanes between two rows compute what nobody reads. A stride splits the
copy by phase, so that neighbouring outputs read neighbouring addresses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._tvm import te, tir

ROWS = (
    8  # output channels of a register tile: 8 x 2 vectors reach 283 of 285 GFLOP/s a core (Zen 5)
)
LANES = 32  # pixels of a tile: two AVX-512 vectors, or two tiles of two AVX2 ones
MOST_LANES = 1024  # of one task: its results, 8 x 1024 floats, stay in L1 until they are stored
LEAST_TASKS = 32  # of an image, where its rows can be split: even enough on some eight cores

Tensor = Any
Pair = Sequence[int]


def row_blocks(channels: int) -> tuple[int, int]:
    """Blocks of output channels and channels in each: as even as can be, so that few are zeros."""
    blocks = -(-channels // ROWS)
    return blocks, -(-channels // blocks)


def pack_weight(weight: Tensor) -> Tensor:
    """[O, I, H, W] -> [O/8, I, H, W, 8]: what one step of a register tile broadcasts lies together."""
    channels, *inner = (int(extent) for extent in weight.shape)
    blocks, rows = row_blocks(channels)

    def element(b: Any, i: Any, y: Any, x: Any, r: Any) -> Any:
        channel = b * rows + r
        if channels % rows == 0:
            return weight(channel, i, y, x)
        return tir.if_then_else(
            channel < channels, weight(channel, i, y, x), tir.const(0, weight.dtype)
        )

    return te.compute((blocks, *inner, rows), element, name=f"{weight.op.name}_packed")


@dataclass(frozen=True)
class Plan:
    """Where the lanes of a window over an image lie. Pairs are (vertical, horizontal)."""

    height: int  # of the output
    width: int
    pitch: int  # columns of a padded row, for each phase
    reach: tuple[
        int, int
    ]  # from the first to the last tap of a window, in rows and columns of a phase
    phases: tuple[int, int]
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
    def length(self) -> int:
        """Lanes of a padded image that tiles may read."""
        last = (self.chunks - 1) * self.rows * self.pitch + self.tiles * self.lanes - 1
        last += self.reach[0] * self.pitch + self.reach[1]
        return -(-(last + 1) // self.pitch) * self.pitch


def plan(image: Pair, out: Pair, window: Pair, attrs: Any, tasks: int) -> Plan:
    """Choose pitch, task and tile for a window over an image; `tasks` there are without splitting its rows."""
    strides, dilation, pads = attrs["strides"], attrs["dilation"], attrs["padding"]
    reach = tuple((w - 1) * d // s for w, d, s in zip(window, dilation, strides, strict=True))
    phases = tuple(1 if w == 1 else s for w, s in zip(window, strides, strict=True))
    pitch = _pitch(image[1], out[1], reach[1], strides[1], phases[1], pads[1])
    rows = _rows(out, pitch, tasks)
    used = (rows - 1) * pitch + out[1]
    lanes = min(LANES, -(-used // 16) * 16)
    tiles = -(-used // lanes)
    is_whole = tuple(strides) == (1, 1) and not any(pads) and pitch == image[1]
    made = Plan(*out, pitch, reach, phases, rows, lanes, tiles, is_whole, True)
    return replace(made, copies=not is_whole or made.length > image[0] * image[1])


def _pitch(width: int, out: int, reach: int, stride: int, phases: int, left: int) -> int:
    """The fewest columns between rows such that what a window reads behind a row's end is zero."""
    shared = max(out, -(-(left + width) // stride))
    behind = out + reach - shared  # columns read in the next row
    zero = behind <= 0 or (behind - 1) * stride + phases - 1 < left
    return shared if zero else out + reach


def _rows(out: Pair, pitch: int, tasks: int) -> int:
    """Rows of a task: few lanes that nobody reads, then enough tasks for a few cores, then large ones."""

    def waste(rows: int) -> float:
        used = (rows - 1) * pitch + out[1]
        return -(-out[0] // rows) * -(-used // LANES) / (out[0] * out[1])

    fitting = [r for r in range(1, out[0] + 1) if r * pitch <= MOST_LANES] or [1]
    least = min(map(waste, fitting))
    good = [r for r in fitting if waste(r) <= least * 1.03]
    parallel = [r for r in good if -(-out[0] // r) * tasks >= LEAST_TASKS]
    return max(parallel) if parallel else min(good)


def plan_of(view: Any) -> Plan:
    """The plan of a convolution that a schedule finds among its ops."""
    (image, _), (weight, _), (out, _) = view.inputs[0], view.inputs[1], view.outputs[0]
    depthwise = is_depthwise(view.attrs, weight)
    tasks = out[0] * (out[1] if depthwise else row_blocks(out[1])[0])
    return plan(tuple(image[2:]), tuple(out[2:]), tuple(weight[2:]), view.attrs, tasks)


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


def _reader(x: Tensor, p: Plan, attrs: Any, name: str) -> Any:
    """Read the image at (n, channel, lane) under tap (y, x) of the window."""
    if not p.copies:
        width = int(x.shape[3])
        dil = attrs["dilation"]

        def direct(n: Any, c: Any, lane: Any, y: Any, z: Any) -> Any:
            at = lane + y * dil[0] * p.pitch + z * dil[1]
            return x(n, c, tir.floordiv(at, width), tir.floormod(at, width))

        return direct
    copy = padded(x, p, attrs, tir.const(0, x.dtype), f"{name}_pad")
    (sh, sw), (dh, dw) = attrs["strides"], attrs["dilation"]

    def read(n: Any, c: Any, lane: Any, y: Any, z: Any) -> Any:
        phase = tir.floormod(y * dh, sh) * p.phases[1] + tir.floormod(z * dw, sw)
        at = lane + tir.floordiv(y * dh, sh) * p.pitch + tir.floordiv(z * dw, sw)
        return copy(n, c, phase, at)

    return read


def conv2d(ins: Sequence[Tensor], call: Any) -> Tensor:
    """NCHW convolution of `x` and a packed weight: the tiles, and the result read out of them."""
    if is_depthwise(call.attrs, call.inputs[1].shape):
        return _depthwise(ins, call)
    x, weight = ins
    blocks, per_group, high, wide, rows = (int(extent) for extent in weight.shape)
    batch, channels, height, width = call.outputs[0].shape
    image = tuple(int(e) for e in x.shape[2:])
    p = plan(image, (height, width), (high, wide), call.attrs, batch * blocks)
    read = _reader(x, p, call.attrs, call.name)
    rc = te.reduce_axis((0, per_group), name="rc")
    ry, rx = te.reduce_axis((0, high), name="ry"), te.reduce_axis((0, wide), name="rx")
    groups = call.attrs["groups"]

    def product(n: Any, chunk: Any, b: Any, r: Any, tile: Any, lane: Any) -> Any:
        at = chunk * (p.rows * p.pitch) + tile * p.lanes + lane
        channel = rc if groups == 1 else _group(b, r, rows, channels, groups) * per_group + rc
        return te.sum(read(n, channel, at, ry, rx) * weight(b, rc, ry, rx, r), axis=[rc, ry, rx])

    shape = (batch, p.chunks, blocks, rows, p.tiles, p.lanes)
    tiles = te.compute(shape, product, name=f"{call.name}_tiles")

    def element(n: Any, o: Any, y: Any, z: Any) -> Any:
        block = (tir.floordiv(o, rows), tir.floormod(o, rows))
        return tiles(n, tir.floordiv(y, p.rows), *block, *_lane(p, y, z))

    return te.compute((batch, channels, height, width), element, name=call.name)


def _group(b: Any, r: Any, rows: int, channels: int, groups: int) -> Any:
    """The group of a block's row; rows behind the last channel count as of the last group, and read on zeros."""
    size = channels // groups
    first = b * rows if size % rows == 0 else tir.Min(b * rows + r, channels - 1)
    return tir.floordiv(first, size)


def _lane(p: Plan, y: Any, z: Any) -> tuple[Any, Any]:
    """Tile and lane, within its task, of output pixel (y, z)."""
    lane = tir.floormod(y, p.rows) * p.pitch + z
    return tir.floordiv(lane, p.lanes), tir.floormod(lane, p.lanes)


def is_depthwise(attrs: Any, weight: Sequence[int]) -> bool:
    """Whether every output channel reads one input channel."""
    return attrs["groups"] > 1 and weight[1] == 1


def _depthwise(ins: Sequence[Tensor], call: Any) -> Tensor:
    """Each channel by itself: a tile is lanes alone."""
    x, weight = ins
    _, _, high, wide, rows = (int(extent) for extent in weight.shape)
    batch, channels, height, width = call.outputs[0].shape
    image = tuple(int(e) for e in x.shape[2:])
    p = plan(image, (height, width), (high, wide), call.attrs, batch * channels)
    read = _reader(x, p, call.attrs, call.name)
    ry, rx = te.reduce_axis((0, high), name="ry"), te.reduce_axis((0, wide), name="rx")
    each = channels // int(x.shape[1])

    def product(n: Any, o: Any, chunk: Any, tile: Any, lane: Any) -> Any:
        at = chunk * (p.rows * p.pitch) + tile * p.lanes + lane
        factor = weight(tir.floordiv(o, rows), 0, ry, rx, tir.floormod(o, rows))
        return te.sum(read(n, tir.floordiv(o, each), at, ry, rx) * factor, axis=[ry, rx])

    tiles = te.compute(
        (batch, channels, p.chunks, p.tiles, p.lanes), product, name=f"{call.name}_tiles"
    )

    def element(n: Any, o: Any, y: Any, z: Any) -> Any:
        return tiles(n, o, tir.floordiv(y, p.rows), *_lane(p, y, z))

    return te.compute((batch, channels, height, width), element, name=call.name)
