"""How the weights lie: in blocks of 16 output channels, which serve vectors of every CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, or_zero, split_index
from ...steps.tiles import BLOCK, blocks_of
from ..bfloat16 import weight_words


def pack_blocks(weight: Tensor, plan: object) -> Tensor:
    """[O, I, H, W] -> [O/16, I, H, W, 16], zeros after the last channel. Any plan reads it."""
    channels, *inner = extents(weight)
    blocks = blocks_of(channels)

    def element(b: PrimExpr, i: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr) -> PrimExpr:
        at = b * BLOCK + lane
        return or_zero(at, channels, blocks * BLOCK, lambda c: weight(c, i, y, x), weight.dtype)

    shape = (blocks, *inner, BLOCK)
    return te.compute(shape, element, name=f"{weight.op.name}_packed")


def pack_expansion(weight: Tensor, plan: Any) -> Tensor:
    """The same, of words where it is multiplied so: then half as many for each output."""
    return pack_blocks(weight_words(weight) if plan.words[0] else weight, plan)


def pack_projection(weight: Tensor, plan: Any) -> Tensor:
    """[O, I, 1, 1] -> [O*f/16, I/f, 1, 1, 16]: lane o*f + j of step k holds channel k*f + j, or so
    many words of two.

    A vector of the image is then f neighbouring channels, repeated: a broadcast of 64 bits.
    """
    weight = weight_words(weight) if plan.words[1] else weight
    out, channels, *_ = extents(weight)
    fold = plan.fold
    blocks = blocks_of(out * fold)

    def element(b: PrimExpr, k: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr) -> PrimExpr:
        at = b * BLOCK + lane
        step = k * fold + tir.floormod(at, fold)

        def read(at: PrimExpr) -> PrimExpr:
            return weight(tir.floordiv(at, fold), step, y, x)

        return or_zero(at, out * fold, blocks * BLOCK, read, weight.dtype)

    shape = (blocks, channels // fold, 1, 1, BLOCK)
    return te.compute(shape, element, name=f"{weight.op.name}_folded")


def unfolded(weight: Tensor, out: int, channels: int, name: str) -> Tensor:
    """What `pack_projection` packed as `pack_blocks` would have; `channels` may be words."""
    fold = channels // int(weight.shape[1])
    blocks = blocks_of(out)

    def element(b: PrimExpr, i: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr) -> PrimExpr:
        def read(channel: PrimExpr) -> PrimExpr:
            step, of = split_index(i, fold)
            block, own = split_index(channel * fold + of, BLOCK)
            return weight(block, step, y, x, own)

        return or_zero(b * BLOCK + lane, out, blocks * BLOCK, read, weight.dtype)

    shape = (blocks, channels, 1, 1, BLOCK)
    return te.compute(shape, element, name=f"{name}_unfolded")


def read_vector(
    weight: Tensor,
    lanes: int,
    vector: PrimExpr,
    step: PrimExpr,
    tap: Sequence[PrimExpr],
    lane: PrimExpr,
) -> PrimExpr:
    """A packed weight by vectors of so many lanes; `tap` is a pair."""
    if lanes == BLOCK:
        return weight(vector, step, *tap, lane)
    each = BLOCK // lanes
    block, part = split_index(vector, each)
    return weight(block, step, *tap, part * lanes + lane)
