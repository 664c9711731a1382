"""Where the windows of a depthwise convolution lie, and its image in chunks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...._tvm import tir
from ....language.decisions import choose
from ....machine import Machine
from ...steps.candidates import best
from .layers import LANES

# Most pixels of a register tile: of 16 channels each, or half of them of two or three blocks.
TILE = 14
EXPANDED = 3  # blocks of the expanded image that exist at a time, at most


@dataclass(frozen=True)
class Form:
    """Where the windows of a depthwise convolution lie. Pairs are (vertical, horizontal)."""

    image: Sequence[int]
    out: Sequence[int]
    window: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]
    before: Sequence[int]  # padding above and on the left
    rows: int  # output rows of a chunk

    @property
    def chunks(self) -> int:
        """Chunks of rows."""
        return -(-self.out[0] // self.rows)

    @property
    def tile(self) -> int:
        """Pixels of a tile of the result."""
        return tile_of(self.out[1])

    @property
    def high(self) -> int:
        """Padded rows under a chunk's windows."""
        return (self.rows - 1) * self.strides[0] + (self.window[0] - 1) * self.dilation[0] + 1

    @property
    def framed(self) -> int:
        """Rows of the image that a chunk keeps."""
        return self.image[0] if self.chunks == 1 else self.high

    def row_of(self, chunk: Any, q: Any) -> Any:
        """The image's row that is row `q` of a chunk's frame, which may be outside."""
        return q if self.chunks == 1 else chunk * (self.rows * self.strides[0]) + q - self.before[0]

    def under(self, dim: int, at: Any, tap: int) -> tuple[Any, list[Any]]:
        """The image's row or column under a tap of the window `at`, clamped, and what tells that it
        was inside.
        """
        offset = tap * self.dilation[dim] - self.before[dim]
        place = at * self.strides[dim] + offset
        last = (-(-self.out[dim] // self._step(dim)) * self._step(dim) - 1) * self.strides[dim]
        index, inside = place, []
        if last + offset >= self.image[dim]:
            index = tir.Min(index, self.image[dim] - 1)
            inside.append(place < self.image[dim])
        if offset < 0:
            index = tir.Max(index, 0)
            inside.append(place >= 0)
        return index, inside

    def _step(self, dim: int) -> int:
        """Windows that are computed together: behind the last one, others may be."""
        return (self.rows, self.tile)[dim]


def tile_of(width: int) -> int:
    """Pixels of a register tile: few that hang over the end of a row, few tiles."""
    return min(range(1, min(width, TILE) + 1), key=lambda t: -(-width // t) * (t + 1))


def in_chunks(f: Form, batch: int, channels: int, cpu: Machine) -> Form:
    """All rows in one chunk where some blocks of them fit in the L2 well; else rows that fit and
    cost the least, counting the halo and the cores that idle.

    64x14x14 e384, 2 cores of Zen 5: 51 us in one chunk, 64 in chunks of 4 rows. 24x56x56 e144: in
    chunks of 28 rows 131 us, of 14 133, of 7 140, of 4 149.
    """

    def framed_bytes(rows: int) -> int:
        g = replace(f, rows=rows)
        return 4 * EXPANDED * LANES * g.high * f.image[1]

    def fits(rows: int) -> bool:
        hidden = 4 * rows * f.out[1] * channels
        return framed_bytes(rows) + hidden <= cpu.l2_bytes * 3 // 4

    def cost(rows: int) -> float:
        g = replace(f, rows=rows)
        rounds = -(-batch * g.chunks // cpu.cores)
        # Half of the work is on the rows under the windows, half on those of the result.
        return rounds * (g.high / f.strides[0] + rows)

    whole = framed_bytes(f.out[0]) <= cpu.l2_bytes // 4
    fitting = [rows for rows in range(1, f.out[0] + 1) if rows == 1 or fits(rows)]
    usual = f.out[0] if whole else min(fitting, key=cost)
    others = [f.out[0], *sorted(fitting, key=cost)] if whole else sorted(fitting, key=cost)
    return replace(f, rows=choose("rows_of_a_chunk", best(dict.fromkeys(others), usual), usual))
