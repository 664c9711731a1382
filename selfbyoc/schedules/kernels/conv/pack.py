"""How the weights of a direct convolution lie."""

from __future__ import annotations

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, or_zero
from ...steps.tiles import BLOCK

MANY_BLOCKS = 32  # blocks, to which one more adds 3% at most
# Output channels of a block: rows of register tiles of 8, 6, 5, 4 or 3 divide it.
_SIZES = (16, 12, 15, 10, 9)
# The same where a block is of one group. Primes fill registers of AVX-512 only: 34 of 34 channels,
# 28x28, 1x1, 55 us with blocks of several groups, 23 in blocks of 17, 50 of 2 (AVX2 69, 63, 51);
# 116 of 116, 3x3, 1998 us, 839 in blocks of 4 (2978, 1737), Nov 2026.
_OF_GROUPS = (16, 12, 15, 14, 10, 9, 8, 7, 6, 5, 4, 17, 13, 11)


def rows_of_one(channels: int) -> int:
    """Channels of a block that is of one group of so many alone; 0 where these have no such size,
    and blocks are of several groups.
    """
    return next((rows for rows in _OF_GROUPS if channels % rows == 0), 0)


def row_blocks(channels: int, groups: int = 1) -> tuple[int, int]:
    """Blocks of output channels and channels in each, such that few are zeros. All of a block are
    of one group where these have such a size: they read the same pixels.

    Many blocks are of an even number, for tiles of two (channels/plan.py).
    """
    if groups > 1 and (rows := rows_of_one(channels // groups)):
        return channels // rows, rows
    if channels <= 8:
        return 1, channels if channels <= 6 else 8

    def cost(rows: int) -> float:
        return -(-channels // rows) * rows * (1.0 if rows % 4 == 0 else 1.05)

    rows = min(_SIZES, key=cost)
    blocks = -(-channels // rows)
    return blocks + (blocks % 2 if blocks >= MANY_BLOCKS and rows == BLOCK else 0), rows


def whole_blocks(channels: int, groups: int = 1) -> tuple[int, int]:
    """The same of 16 channels each, which are vectors, none of two groups."""
    blocks = -(-channels // groups // BLOCK)
    even = blocks % 2 if groups == 1 and blocks >= MANY_BLOCKS else 0
    return groups * (blocks + even), BLOCK


def pack(weight: Tensor, groups: int = 1, whole: bool = False) -> Tensor:
    """[O, I, H, W] -> [O/16, I, H, W, 16]: what one step of a register tile reads lies together.
    Every plan reads it, on any CPU. `whole` are blocks of 16 in any case.
    """
    channels, *inner = extents(weight)
    blocks, rows = whole_blocks(channels, groups) if whole else row_blocks(channels, groups)
    parts = groups if whole else 1  # each with zeros after its own channels
    size, each = channels // parts, blocks // parts

    def element(b: PrimExpr, i: PrimExpr, y: PrimExpr, x: PrimExpr, r: PrimExpr) -> PrimExpr:
        first = tir.floordiv(b, each) * size

        def read(o: PrimExpr) -> PrimExpr:
            return weight(first + o, i, y, x)

        return or_zero(tir.floormod(b, each) * rows + r, size, each * rows, read, weight.dtype)

    return te.compute((blocks, *inner, rows), element, name=f"{weight.op.name}_packed")
