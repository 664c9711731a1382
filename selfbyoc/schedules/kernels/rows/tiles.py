"""Matrix products over tiles of rows: what dense, dense chains and layer_norm + dense are made of.

Rows come in tiles of 8, columns in blocks of 16, both whole: what lies behind the last row is a
copy of it, and behind the last column a product with the zeros of the packed weight. Only
`result` has the real shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...._tvm import te, tir
from ....language.decisions import choose
from ...steps.blocks import divisor
from ...steps.candidates import divisors, next_to

BLOCK = 16  # columns of a packed block: one AVX-512 vector of float32, two AVX2 ones
ROWS = 8  # 8 rows x 2 vectors are 16 accumulators: 283 of 285 GFLOP/s a core (Zen 5)
# k in pieces: 256 x 2 blocks of a weight are 32 KB, which stay in L1 for all tiles of a task
# (768 x 3072: 548 GFLOP/s against 530), and sums of fewer terms are more accurate (4e-7, not 3e-6).
PIECE = 256
LEAST_PIECE = 64  # below, adding the pieces up costs more than 1 in 50
GROUP = 32  # tiles that share a piece of the weight at most; 197 rows in groups of 13: 5% longer

Tensor = Any


def blocks_of(units: int) -> int:
    """Blocks of columns; two at a time make a tile, so many of them come in pairs."""
    blocks = -(-units // BLOCK)
    return blocks + blocks % 2 if blocks > 8 else blocks


def pieces_of(rows: Rows, depth: int, name: str) -> int:
    """Pieces of k, where several tiles of rows can share one."""
    if rows.tiles[-1] == 1:
        return 1
    size = divisor(depth, PIECE)
    usual = depth // size if size >= LEAST_PIECE else 1
    return choose(
        f"{name}.pieces", next_to(divisors(depth, max(1, depth // LEAST_PIECE)), usual), usual
    )


def pack_weight(weight: Tensor) -> Tensor:
    """[units, in] -> [units/16, in, 16], zeros behind the last unit: a vector for each k."""
    units, k = (int(extent) for extent in weight.shape)
    blocks = blocks_of(units)

    def element(b: Any, i: Any, lane: Any) -> Any:
        unit = b * BLOCK + lane
        if units == blocks * BLOCK:
            return weight(unit, i)
        return tir.if_then_else(unit < units, weight(unit, i), tir.const(0, weight.dtype))

    return te.compute((blocks, k, BLOCK), element, name=f"{weight.op.name}_packed")


@dataclass(frozen=True)
class Rows:
    """The rows of a tensor of `lead` x columns, in tiles.

    Each outer index has tiles of its own, unless its rows are few and odd: then all rows are
    numbered through.
    """

    lead: tuple[int, ...]

    @property
    def numbered_through(self) -> bool:
        """Whether a tile may hold rows of several outer indices; the result is then copied."""
        return (
            math.prod(self.lead[:-1]) > 1 and self.lead[-1] % ROWS != 0 and self.lead[-1] < 4 * ROWS
        )

    @property
    def outer(self) -> tuple[int, ...]:
        """Extents in front of the tiles."""
        return () if self.numbered_through else self.lead[:-1]

    @property
    def count(self) -> int:
        """Rows for one outer index."""
        return math.prod(self.lead) if self.numbered_through else self.lead[-1]

    @property
    def height(self) -> int:
        """Rows of a tile: fewer where there are no more."""
        return min(ROWS, self.count)

    @property
    def tiles(self) -> tuple[int, ...]:
        """Extents of (outer, tile)."""
        tiles = -(-self.count // self.height)
        # Many come in even groups: better a tile of copies than groups of one.
        while tiles > GROUP and divisor(tiles, GROUP) <= GROUP // 2:
            tiles += 1
        return (*self.outer, tiles)

    @property
    def tasks(self) -> int:
        """Outer indices: each is a task of its own at least."""
        return math.prod(self.outer)

    def of(self, index: Sequence[Any]) -> tuple[Any, ...]:
        """(outer, tile, row) -> the lead index; the last row again for those behind it."""
        *outer, tile, row = index
        number = tir.Min(tile * self.height + row, self.count - 1)
        if not self.numbered_through:
            return (*outer, number)
        found: list[Any] = []
        for extent in self.lead[:0:-1]:
            found.insert(0, tir.floormod(number, extent))
            number = tir.floordiv(number, extent)
        return (number, *found)

    def where(self, lead: Sequence[Any]) -> tuple[Any, ...]:
        """A lead index -> (outer, tile, row)."""
        *outer, number = lead
        if self.numbered_through:
            outer, number = [], lead[0]
            for extent, i in zip(self.lead[1:], lead[1:], strict=True):
                number = number * extent + i
        return (*outer, tir.floordiv(number, self.height), tir.floormod(number, self.height))


def product(
    rows: Rows, read: Callable[..., Any], depth: int, weight: Tensor, dtype: str, name: str
) -> Tensor:
    """[outer, tile, block, row, lane]: sums over k of read(outer, tile, row, k) * weight.

    Where k comes in pieces, `<name>_last` has the sums of the last one and `<name>_before` those of
    the others, of `<name>_parts`: [outer, tile, piece, block, row, lane].
    """
    pieces = pieces_of(rows, depth, name)
    size = depth // pieces
    k = te.reduce_axis((0, size), name="k")

    def part(at: Sequence[Any], piece: Any, block: Any, row: Any, lane: Any) -> Any:
        left, right = read(*at, row, piece * size + k), weight(block, piece * size + k, lane)
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=k)

    tile = (int(weight.shape[0]), rows.height, BLOCK)
    last = te.compute(
        (*rows.tiles, *tile),
        lambda *i: part(i[:-3], pieces - 1, *i[-3:]),
        name=name if pieces == 1 else f"{name}_last",
    )
    if pieces == 1:
        return last
    parts = te.compute(
        (*rows.tiles, pieces - 1, *tile), lambda *i: part(i[:-4], *i[-4:]), name=f"{name}_parts"
    )
    before = _sum_of(parts, len(rows.tiles), f"{name}_before")
    return te.compute(before.shape, lambda *i: before(*i) + last(*i), name=name)


def _sum_of(parts: Tensor, axis: int, name: str) -> Tensor:
    """The sum over one axis; a copy where there is but one part."""
    shape = [int(extent) for extent in parts.shape]
    pieces = shape.pop(axis)
    if pieces == 1:
        return te.compute(shape, lambda *i: parts(*i[:axis], 0, *i[axis:]), name=name)
    piece = te.reduce_axis((0, pieces), name="piece")
    return te.compute(
        shape, lambda *i: te.sum(parts(*i[:axis], piece, *i[axis:]), axis=piece), name=name
    )


def epilogue(
    tiles: Tensor,
    bias: Tensor | None,
    out: tuple[Sequence[int], str],
    activation: Callable[..., Any],
    name: str,
) -> Tensor:
    """Bias and activation on the tiles of a product, for a result of this shape and dtype."""
    units = out[0][-1]

    def element(*i: Any) -> Any:
        value = tiles(*i).astype(out[1])
        if bias is not None:
            unit = i[-3] * BLOCK + i[-1]
            padded = int(tiles.shape[-3]) * BLOCK > units
            value = value + bias(tir.Min(unit, units - 1) if padded else unit)
        return activation(value)

    return te.compute(tiles.shape, element, name=name)


def result(
    rows: Rows, tiles: Tensor, units: int, name: str, residual: Tensor | None = None
) -> Tensor:
    """The real elements: [lead, units], with what is added to them."""

    def element(*i: Any) -> Any:
        *at, row = rows.where(i[:-1])
        value = tiles(*at, tir.floordiv(i[-1], BLOCK), row, tir.floormod(i[-1], BLOCK))
        return value if residual is None else value + residual(*i)

    return te.compute((*rows.lead, units), element, name=name)
