"""Direct convolution as a matrix product over flat pixels (lanes.py), and how its weights are packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tvm import te, tir
from .lanes import Plan, lane_of, plan, reader

ROWS = 8  # output channels of a register tile: 8 x 2 vectors reach 283 of 285 GFLOP/s a core (Zen 5)

Tensor = Any


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


def plan_of(view: Any) -> Plan:
    """The plan of a convolution or pool that a schedule finds among its ops."""
    image, out = view.inputs[0][0], view.outputs[0][0]
    window, channels = view.attrs.get("pool_size"), out[1]
    if view.kind == "conv2d":
        weight = view.inputs[1][0]
        window = weight[2:]
        channels = out[1] if is_depthwise(view.attrs, weight) else row_blocks(out[1])[0]
    return plan(tuple(image[2:]), tuple(out[2:]), tuple(window), view.attrs, out[0] * channels)


def conv2d(ins: Sequence[Tensor], call: Any) -> Tensor:
    """NCHW convolution of `x` and a packed weight: the tiles, and the result read out of them."""
    if is_depthwise(call.attrs, call.inputs[1].shape):
        return _depthwise(ins, call)
    x, weight = ins
    blocks, per_group, high, wide, rows = (int(extent) for extent in weight.shape)
    batch, channels, height, width = call.outputs[0].shape
    image = tuple(int(e) for e in x.shape[2:])
    p = plan(image, (height, width), (high, wide), call.attrs, batch * blocks)
    read = reader(x, p, call.attrs, tir.const(0, x.dtype), call.name)
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
        return tiles(n, tir.floordiv(y, p.rows), *block, *lane_of(p, y, z))

    return te.compute((batch, channels, height, width), element, name=call.name)


def _group(b: Any, r: Any, rows: int, channels: int, groups: int) -> Any:
    """The group of a block's row; rows behind the last channel count as of the last group, and read on zeros."""
    size = channels // groups
    first = b * rows if size % rows == 0 else tir.Min(b * rows + r, channels - 1)
    return tir.floordiv(first, size)


def is_depthwise(attrs: Any, weight: Sequence[int]) -> bool:
    """Whether every output channel reads one input channel."""
    return attrs["groups"] > 1 and weight[1] == 1


def _depthwise(ins: Sequence[Tensor], call: Any) -> Tensor:
    """Each output channel by itself: a tile is lanes alone."""
    x, weight = ins
    _, _, high, wide, rows = (int(extent) for extent in weight.shape)
    batch, channels, height, width = call.outputs[0].shape
    image = tuple(int(e) for e in x.shape[2:])
    p = plan(image, (height, width), (high, wide), call.attrs, batch * channels)
    read = reader(x, p, call.attrs, tir.const(0, x.dtype), call.name)
    each = channels // int(x.shape[1])

    def term(n: Any, o: Any, lane: Any, y: Any, z: Any) -> Any:
        factor = weight(tir.floordiv(o, rows), 0, y, z, tir.floormod(o, rows))
        return read(n, tir.floordiv(o, each), lane, y, z) * factor

    return by_channel(term, te.sum, p, (batch, channels), (high, wide), call.name)


def by_channel(
    term: Any, combine: Any, p: Plan, outer: Sequence[int], window: Sequence[int], name: str
) -> Tensor:
    """`combine` of `term(n, channel, lane, y, x)` under each window: tiles of lanes, read out as an image."""
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
