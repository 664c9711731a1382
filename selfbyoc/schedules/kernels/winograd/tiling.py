"""How the outputs of a Winograd convolution are cut into tiles, and tiles into blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...._tvm import tir
from ....language.decisions import choose
from ...steps.blocks import divisor
from ...steps.candidates import best

WHOLE = 64  # tiles of a block at most: an image of 28 x 28 is one, nothing is computed in vain
ROWS = 28  # tiles of a block of rows, about: their sums, and inputs of 64 channels, are in L2


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

    @property
    def size(self) -> int:
        """Rows and columns of inputs of a tile."""
        return self.m + self.window - 1

    @property
    def count(self) -> int:
        """Tiles in all."""
        return self.batch * self.down * self.along

    @property
    def work(self) -> int:
        """Tiles that are computed, the repeated ones too."""
        return math.prod(self.blocks) * self.block

    @property
    def block(self) -> int:
        """Tiles of a block."""
        return self.images * self.rows * self.along

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of images, and of rows; the last rows may hold tiles that nobody reads."""
        return self.batch // self.images, -(-self.down // self.rows)

    def place(self, outer: Sequence[Any], tile: Any) -> tuple[Any, Any, Any]:
        """Image, row and column of a tile of a block; a row behind the last repeats the last."""
        row = tir.floordiv(tile, self.along)
        n = outer[0] * self.images + tir.floordiv(row, self.rows)
        y = outer[1] * self.rows + tir.floormod(row, self.rows)
        if self.down % self.rows:
            y = tir.Min(y, self.down - 1)
        return n, y, tir.floormod(tile, self.along)


def cut(out: Sequence[int], m: int, window: int) -> Tiling:
    """The tiles of a result in blocks: even for two cores, with little waste in the last rows."""
    down, along = -(-out[2] // m), -(-out[3] // m)
    if down * along <= WHOLE:
        images = divisor(out[0], max(1, ROWS // (down * along)))
        return Tiling(m, window, out[0], down, along, images, down)

    def cost(rows: int) -> int:
        tasks = out[0] * -(-down // rows)
        return (tasks + tasks % 2) * rows

    most = max(1, ROWS // along)
    return Tiling(m, window, out[0], down, along, 1, min(range(most, 0, -1), key=cost))


def decided(t: Tiling, name: str) -> Tiling:
    """A tiling with the blocks that are chosen for the convolution `name`."""
    most = max(t.rows, min(t.down, WHOLE // t.along))
    others = [replace(t, images=1, rows=rows) for rows in range(most, 0, -1)]
    blocks = [(other.images, other.rows) for other in sorted(others, key=lambda o: o.work)]
    usual = (t.images, t.rows)
    images, rows = choose(f"{name}.block_of_{t.m}", best(blocks, usual, 2), usual)
    return replace(t, images=images, rows=rows)
