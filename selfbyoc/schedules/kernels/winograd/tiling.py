"""How the outputs of a Winograd convolution are cut into tiles, and tiles into blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....machine import Machine
from ....tvm import tir
from ....tvm.types import Attrs, PrimExpr
from ...steps.blocks import divisor

# Tiles of a block at most: an image of 28 x 28 is one, nothing is computed in vain.
MOST_WHOLE_TILES = 64
# Tiles of a block of rows: their inputs of 64 channels take a half of L2 at most, and more than 28
# gain nothing (1 MB of L2, Zen 5, Nov 2026). Fewer than 8 read the weights too often.
MOST_TILES, LEAST_TILES, BLOCK_CHANNELS = 28, 8, 64


def apart(attrs: Attrs) -> int:
    """How far the taps of a window are apart, down and along."""
    return int(attrs["dilation"][0])


def as_images(out: Sequence[int], step: int) -> tuple[int, ...]:
    """A result whose window has its taps `step` apart: pixels that share taps are images of their
    own, step^2 of each, whose windows have none apart. The last rows and columns of some are read
    by nobody.
    """
    return out[0] * step**2, out[1], -(-out[2] // step), -(-out[3] // step)


@dataclass(frozen=True)
class Tiling:
    """How the outputs of a convolution are cut into tiles of m x m, and tiles into blocks."""

    m: int
    window: int
    batch: int
    down: int  # tiles in a column of an image
    along: int  # tiles in a row
    images: int  # of a block; they divide the batch
    rows: int  # rows of tiles of a block in each of its images

    def __str__(self) -> str:
        images = f"{self.images} images of " if self.images > 1 else ""
        return f"blocks of {images}{self.rows} x {self.along} tiles"

    @property
    def size(self) -> int:
        """Rows and columns of inputs of a tile."""
        return self.m + self.window - 1

    @property
    def count(self) -> int:
        """Tiles in all."""
        return self.batch * self.down * self.along

    @property
    def block(self) -> int:
        """Tiles of a block."""
        return self.images * self.rows * self.along

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of images, and of rows; the last rows may hold tiles that nobody reads."""
        return self.batch // self.images, -(-self.down // self.rows)

    @property
    def tasks(self) -> int:
        """Blocks in all."""
        return math.prod(self.blocks)

    def place(
        self, outer: Sequence[PrimExpr], tile: PrimExpr
    ) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
        """Image, row and column of a tile of a block. A tile after the last one of the block
        repeats that, a row after the last one of the image repeats that.
        """
        tile = tir.Min(tile, self.block - 1)
        row = tir.floordiv(tile, self.along)
        n = outer[0] * self.images + tir.floordiv(row, self.rows)
        y = outer[1] * self.rows + tir.floormod(row, self.rows)
        if self.down % self.rows:
            y = tir.Min(y, self.down - 1)
        return n, y, tir.floormod(tile, self.along)


def tilings(out: Sequence[int], m: int, window: int, cpu: Machine) -> list[Tiling]:
    """The tiles of a result in blocks: whole images where they are small, else rows of tiles. The
    largest blocks first.
    """
    down, along = -(-out[2] // m), -(-out[3] // m)
    size = m + window - 1
    fitting = cpu.l2_bytes // 2 // (4 * size**2 * BLOCK_CHANNELS)
    most = min(MOST_TILES, max(LEAST_TILES, fitting))
    rows = list(range(min(down, max(1, most // along)), 0, -1))
    found = []
    if down * along <= MOST_WHOLE_TILES:
        images = divisor(out[0], max(1, most // (down * along)))
        found = [(n, down) for n in dict.fromkeys((images, 1))]
    found += [(1, r) for r in rows if (1, r) not in found]
    return [Tiling(m, window, out[0], down, along, n, r) for n, r in found]
