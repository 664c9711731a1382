"""How the weights lie: in blocks of 16 output channels, which serve vectors of every CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._tvm import te, tir
from ....language.types import Tensor
from ...steps.tiles import BLOCK


def extents(tensor: Tensor) -> tuple[int, ...]:
    """A tensor's shape as numbers."""
    return tuple(int(extent) for extent in tensor.shape)


def pack_blocks(weight: Tensor, plan: Any) -> Tensor:
    """[O, I, H, W] -> [O/16, I, H, W, 16], zeros after the last channel. Any plan reads it."""
    channels, *inner = extents(weight)

    def element(b: Any, i: Any, y: Any, x: Any, lane: Any) -> Any:
        return or_zero(b * BLOCK + lane, channels, BLOCK, lambda c: weight(c, i, y, x))

    shape = (-(-channels // BLOCK), *inner, BLOCK)
    return te.compute(shape, element, name=f"{weight.op.name}_packed")


def pack_projection(weight: Tensor, plan: Any) -> Tensor:
    """[O, I, 1, 1] -> [O*f/16, I/f, 1, 1, 16]: lane o*f + j of step k holds channel k*f + j.

    A vector of the image is then f neighbouring channels, repeated: a broadcast of 64 bits.
    """
    out, channels, *_ = extents(weight)
    fold = plan.fold

    def element(b: Any, k: Any, y: Any, x: Any, lane: Any) -> Any:
        at = b * BLOCK + lane
        step = k * fold + tir.floormod(at, fold)
        return or_zero(at, out * fold, BLOCK, lambda at: weight(tir.floordiv(at, fold), step, y, x))

    shape = (-(-out * fold // BLOCK), channels // fold, 1, 1, BLOCK)
    return te.compute(shape, element, name=f"{weight.op.name}_folded")


def unfolded(weight: Tensor, out: int, channels: int) -> Tensor:
    """What `pack_projection` packed as `pack_blocks` would have."""
    fold = channels // int(weight.shape[1])

    def element(b: Any, i: Any, y: Any, x: Any, lane: Any) -> Any:
        def read(channel: Any) -> Any:
            at = channel * fold + tir.floormod(i, fold)
            where = (tir.floordiv(at, BLOCK), tir.floordiv(i, fold), y, x)
            return weight(*where, tir.floormod(at, BLOCK))

        return or_zero(b * BLOCK + lane, out, BLOCK, read)

    shape = (-(-out // BLOCK), channels, 1, 1, BLOCK)
    return te.compute(shape, element, name=f"{weight.op.name}_unfolded")


def or_zero(channel: Any, channels: int, whole: int, read: Callable[[Any], Any]) -> Any:
    """What is read of a channel, zero after the last one; channels go by a `whole` number."""
    if channels % whole == 0:
        return read(channel)
    return tir.if_then_else(channel < channels, read(channel), tir.const(0, "float32"))


def read_vector(weight: Tensor, lanes: int, vector: Any, step: Any, tap: Any, lane: Any) -> Any:
    """A packed weight by vectors of so many lanes; `tap` is a pair."""
    if lanes == BLOCK:
        return weight(vector, step, *tap, lane)
    each = BLOCK // lanes
    at = tir.floormod(vector, each) * lanes + lane
    return weight(tir.floordiv(vector, each), step, *tap, at)
