"""Direct convolution as a matrix product over flat pixels (lanes.py), and how its weights are
packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...._tvm import te, tir
from ....language.decisions import choose
from . import channel_lanes, pointwise
from .lanes import POOL_LANES, Plan, decided, lane_of, plan, reader

ROWS = 16  # output channels of a block: one or two register tiles, or one vector (channel_lanes.py)
# Lanes of a convolution: pixels of the image as one row, channels, or pixels of padded rows.
FLAT, CHANNELS, PIXELS = "flat pixels", "channels", "pixels"
MANY = 32  # blocks, to which one more adds 3% at most

Tensor = Any


def row_blocks(channels: int) -> tuple[int, int]:
    """Blocks of output channels and channels in each: as even as can be, so that few are zeros.

    Many blocks are of an even number, for tiles of two (channel_tiles.py).
    """
    blocks = -(-channels // ROWS)
    blocks += blocks % 2 if blocks >= MANY else 0
    return blocks, -(-channels // blocks)


def pack_weight(weight: Tensor) -> Tensor:
    """[O, I, H, W] -> [O/16, I, H, W, 16]: what one step of a register tile broadcasts lies
    together.
    """
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


def plan_of(view: Any) -> Plan:
    """The plan of a convolution or pool that a schedule finds among its ops."""
    image, out = view.inputs[0][0], view.outputs[0][0]
    if view.kind != "conv2d":
        size, tasks = view.attrs["pool_size"], out[0] * out[1]
        return plan(image[2:], out[2:], size, view.attrs, tasks, POOL_LANES)
    weight = view.inputs[1][0]
    return _plan(image, weight[1:], out, view.attrs)


def _plan(image: Sequence[int], weight: Sequence[int], out: Sequence[int], attrs: Any) -> Plan:
    """The plan of a convolution; `weight` is [I, H, W]."""
    blocks = out[1] if is_depthwise(attrs, weight[0]) else row_blocks(out[1])[0]
    return plan(image[2:], out[2:], weight[1:], attrs, out[0] * blocks)


def is_depthwise(attrs: Any, per_group: int) -> bool:
    """Whether every output channel reads one input channel."""
    return attrs["groups"] > 1 and per_group == 1


def extents(tensor: Tensor) -> tuple[int, ...]:
    """A tensor's shape as numbers."""
    return tuple(int(extent) for extent in tensor.shape)


def conv2d(ins: Sequence[Tensor], call: Any) -> Tensor:
    """The compute that stands in for an NCHW `conv2d`: `x` and a packed weight."""
    x, weight = ins
    return convolution(x, weight, call.attrs, call.outputs[0].shape, call.name)


def convolution(x: Tensor, weight: Tensor, attrs: Any, out: Sequence[int], name: str) -> Tensor:
    """The tiles of a convolution, and the result read out of them."""
    blocks, per_group, high, wide, rows = extents(weight)
    p = _plan(extents(x), (per_group, high, wide), out, attrs)
    lanes = _lanes(x, weight, attrs, p, name)
    if lanes == FLAT:
        return pointwise.convolution(pointwise.read_pixels(x, attrs, name), weight, out, name)
    if lanes == CHANNELS:
        read = reader(x, replace(p, copies=not p.is_whole), attrs, tir.const(0, x.dtype), name)
        return channel_lanes.convolution(read, weight, p, out, name)
    p = decided(p, name)
    read = reader(x, p, attrs, tir.const(0, x.dtype), name)
    if is_depthwise(attrs, per_group):
        return _depthwise(read, weight, p, out[1] // int(x.shape[1]), out, name)
    term = product(read, weight, attrs["groups"], out[1])

    def tile(n: Any, chunk: Any, b: Any, r: Any, t: Any, lane: Any) -> Any:
        return term(n, b, r, chunk * (p.rows * p.pitch) + t * p.lanes + lane)

    shape = (out[0], p.chunks, blocks, rows, p.tiles, p.lanes)
    tiles = te.compute(shape, tile, name=f"{name}_tiles")

    def element(n: Any, o: Any, y: Any, z: Any) -> Any:
        block = (tir.floordiv(o, rows), tir.floormod(o, rows))
        return tiles(n, tir.floordiv(y, p.rows), *block, *lane_of(p, y, z))

    return te.compute(out, element, name=name)


def _lanes(x: Tensor, weight: Tensor, attrs: Any, p: Plan, name: str) -> str:
    """What lies in the lanes of a vector."""
    flat = pointwise.use(x, extents(weight), attrs)
    channels = channel_lanes.fits(p, attrs["groups"], extents(weight)[-1])
    if channels and channel_lanes.pays(p) and flat < pointwise.LEAST_USE:
        usual = CHANNELS
    else:
        # Padded rows of pixels of a 1x1 window were never faster (192x28x28: 45.8 us flat, 80 so).
        usual = FLAT if flat > 0 else PIXELS
    fitting = {FLAT: flat > 0, CHANNELS: channels, PIXELS: flat == 0}
    return choose(f"{name}.lanes", [form for form in fitting if fitting[form]], usual)


def product(read: Any, weight: Tensor, groups: int, channels: int) -> Any:
    """The sum at (n, block, row of the block, lane)."""
    _, per_group, high, wide, rows = extents(weight)
    rc = te.reduce_axis((0, per_group), name="rc")
    ry, rx = te.reduce_axis((0, high), name="ry"), te.reduce_axis((0, wide), name="rx")

    def term(n: Any, b: Any, r: Any, lane: Any) -> Any:
        channel = rc if groups == 1 else _group(b, r, rows, channels, groups) * per_group + rc
        return te.sum(read(n, channel, lane, ry, rx) * weight(b, rc, ry, rx, r), axis=[rc, ry, rx])

    return term


def _group(b: Any, r: Any, rows: int, channels: int, groups: int) -> Any:
    """The group of a block's row; rows behind the last channel count as of the last group."""
    size = channels // groups
    first = b * rows if size % rows == 0 else tir.Min(b * rows + r, channels - 1)
    return tir.floordiv(first, size)


def _depthwise(
    read: Any, weight: Tensor, p: Plan, each: int, out: Sequence[int], name: str
) -> Tensor:
    """Each output channel by itself, `each` to an input channel: a tile is lanes alone."""
    _, _, high, wide, rows = extents(weight)

    def term(n: Any, o: Any, lane: Any, y: Any, z: Any) -> Any:
        factor = weight(tir.floordiv(o, rows), 0, y, z, tir.floormod(o, rows))
        return read(n, tir.floordiv(o, each), lane, y, z) * factor

    return by_channel(term, te.sum, p, out[:2], (high, wide), name)


def by_channel(
    term: Any, combine: Any, p: Plan, outer: Sequence[int], window: Sequence[int], name: str
) -> Tensor:
    """`combine` of `term(n, channel, lane, y, x)` under each window: tiles of lanes, read out as an
    image.
    """
    ry, rx = te.reduce_axis((0, window[0]), name="ry"), te.reduce_axis((0, window[1]), name="rx")

    def element(n: Any, o: Any, chunk: Any, tile: Any, lane: Any) -> Any:
        at = chunk * (p.rows * p.pitch) + tile * p.lanes + lane
        return combine(term(n, o, at, ry, rx), axis=[ry, rx])

    tiles = te.compute((*outer, p.chunks, p.tiles, p.lanes), element, name=f"{name}_tiles")
    return te.compute(
        (*outer, p.height, p.width),
        lambda n, o, y, z: tiles(n, o, tir.floordiv(y, p.rows), *lane_of(p, y, z)),
        name=name,
    )
