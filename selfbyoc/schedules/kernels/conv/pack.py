"""How the weights of a direct convolution lie."""

from __future__ import annotations

from ...._tvm import te
from ....language.types import Expr, Tensor
from ...steps.tensors import extents, or_zero
from ...steps.tiles import BLOCK

MANY_BLOCKS = 32  # blocks, to which one more adds 3% at most
# Output channels of a block: rows of register tiles of 8, 6, 5, 4 or 3 divide it.
_SIZES = (16, 12, 15, 10, 9)


def row_blocks(channels: int) -> tuple[int, int]:
    """Blocks of output channels and channels in each, such that few are zeros.

    Many blocks are of an even number, for tiles of two (channels/plan.py).
    """
    if channels <= 8:
        return 1, channels if channels <= 6 else 8

    def cost(rows: int) -> float:
        return -(-channels // rows) * rows * (1.0 if rows % 4 == 0 else 1.05)

    rows = min(_SIZES, key=cost)
    blocks = -(-channels // rows)
    return blocks + (blocks % 2 if blocks >= MANY_BLOCKS and rows == BLOCK else 0), rows


def whole_blocks(channels: int) -> tuple[int, int]:
    """The same of 16 channels each, which are vectors."""
    blocks = -(-channels // BLOCK)
    return blocks + (blocks % 2 if blocks >= MANY_BLOCKS else 0), BLOCK


def pack(weight: Tensor, whole: bool = False) -> Tensor:
    """[O, I, H, W] -> [O/16, I, H, W, 16]: what one step of a register tile reads lies together.
    Every plan reads it, on any CPU. `whole` are blocks of 16 in any case.
    """
    channels, *inner = extents(weight)
    blocks, rows = whole_blocks(channels) if whole else row_blocks(channels)

    def element(b: Expr, i: Expr, y: Expr, x: Expr, r: Expr) -> Expr:
        return or_zero(
            b * rows + r, channels, blocks * rows, lambda o: weight(o, i, y, x), weight.dtype
        )

    return te.compute((blocks, *inner, rows), element, name=f"{weight.op.name}_packed")
