"""A window over padded rows: tiles of lanes, and the result read out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .....graph import OpCall
from .....tvm import te, tir
from .....tvm.types import PrimExpr, Stage, Tensor
from ....steps.tensors import extents, reduce_axes, split_index
from ..depth import in_parts
from ..form import Conv2d
from ..lanes import Lanes, Reader, lane_of, reader
from ..operands import FLOATS, Operands
from .plan import PixelPlan


@dataclass(frozen=True)
class PixelStages:
    """The stages of a window over padded rows: tensors, and while scheduling their blocks."""

    tiles: Stage
    result: Stage
    copy: Stage | None = None  # the padded rows, where the image does not lie so already
    parts: Tensor | None = None  # the sums over some input channels, where the tiles add several
    floats: Stage | None = None  # of a weight of halves


def convolution(conv: Conv2d, plan: PixelPlan) -> PixelStages:
    """The tiles of a convolution with a packed weight, and the result read out of them."""
    conv, floats = conv.staged().in_floats()
    weight, out, groups, p = conv.weight, conv.out, conv.attrs["groups"], plan.lanes
    blocks, per_group, _, _, rows = extents(weight)
    read, copy = conv.reader(p)
    if groups > 1 and per_group == 1:
        return _depthwise(conv, plan, read, copy)
    depth = plan.depth or per_group
    term = product(read, weight, groups, out[1], depth, conv.operands)

    def tile(
        n: PrimExpr,
        chunk: PrimExpr,
        b: PrimExpr,
        r: PrimExpr,
        t: PrimExpr,
        lane: PrimExpr,
        part: PrimExpr,
    ) -> PrimExpr:
        return term(n, b, r, chunk * (p.rows * p.pitch) + t * p.lanes + lane, part * depth)

    shape = (out[0], p.chunks, blocks, rows, p.tiles, p.lanes)
    parts, tiles = in_parts(shape, per_group // depth, tile, f"{conv.name}_tiles")

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        return tiles(n, tir.floordiv(y, p.rows), *split_index(o, rows), *lane_of(p, y, z))

    return PixelStages(tiles, te.compute(out, element, name=conv.name), copy, parts, floats)


def _depthwise(conv: Conv2d, plan: PixelPlan, read: Reader, copy: Tensor | None) -> PixelStages:
    """Each channel by itself."""
    _, _, *window, rows = extents(conv.weight)
    each = conv.out[1] // int(conv.x.shape[1])

    def tap(n: PrimExpr, o: PrimExpr, lane: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        block, row = split_index(o, rows)
        factor = conv.weight(block, 0, y, z, row)
        return conv.operands.times(read(n, tir.floordiv(o, each), lane, y, z), factor)

    return by_channel(tap, te.sum, plan, conv.out[:2], window, conv.name, copy)


def product(
    read: Reader,
    weight: Tensor,
    groups: int,
    channels: int,
    depth: int = 0,
    operands: Operands = FLOATS,
) -> Callable[..., PrimExpr]:
    """The sum at (n, block, row of the block, lane); of `depth` input channels from a `start`."""
    blocks, per_group, high, wide, rows = extents(weight)
    size, whole = channels // groups, blocks * rows == channels
    rc, ry, rx = reduce_axes(rc=depth or per_group, ry=high, rx=wide)

    def term(
        n: PrimExpr, b: PrimExpr, r: PrimExpr, lane: PrimExpr, start: PrimExpr = 0
    ) -> PrimExpr:
        # Rows after the last channel count as of the last group.
        first = b * rows if whole and size % rows == 0 else tir.Min(b * rows + r, channels - 1)
        own = start + rc
        channel = own if groups == 1 else tir.floordiv(first, size) * per_group + own
        pixel, factor = read(n, channel, lane, ry, rx), weight(b, own, ry, rx, r)
        return te.sum(operands.times(pixel, factor), axis=[rc, ry, rx])

    return term


def pooled(
    x: Tensor,
    call: OpCall,
    plan: PixelPlan,
    combine: Callable[..., PrimExpr],
    fill: PrimExpr,
    name: str,
) -> PixelStages:
    """`combine` of the elements under each window of a pool; `fill` is outside the image."""
    read, copy = reader(x, plan.lanes, call.attrs, fill, name)
    outer = call.outputs[0].shape[:2]
    return by_channel(read, combine, plan, outer, call.attrs["pool_size"], name, copy)


def by_channel(
    term: Reader,
    combine: Callable[..., PrimExpr],
    plan: PixelPlan,
    outer: Sequence[int],
    window: Sequence[int],
    name: str,
    copy: Tensor | None,
) -> PixelStages:
    """`combine` of `term(n, channel, lane, y, x)` under each window of each channel."""
    p: Lanes = plan.lanes
    ry, rx = reduce_axes(ry=window[0], rx=window[1])

    def element(
        n: PrimExpr, o: PrimExpr, chunk: PrimExpr, tile: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        at = chunk * (p.rows * p.pitch) + tile * p.lanes + lane
        return combine(term(n, o, at, ry, rx), axis=[ry, rx])

    tiles = te.compute((*outer, p.chunks, p.tiles, p.lanes), element, name=f"{name}_tiles")
    result = te.compute(
        (*outer, p.height, p.width),
        lambda n, o, y, z: tiles(n, o, tir.floordiv(y, p.rows), *lane_of(p, y, z)),
        name=name,
    )
    return PixelStages(tiles, result, copy)
