"""How rows lie in tiles: what is after the last row is a copy of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....language.decisions import for_every_size, is_symbolic
from ....tvm import tir
from ....tvm.types import PrimExpr
from ...steps.blocks import divisor
from ...steps.faults import Faults, uncovered, undivided, unlike


@dataclass(frozen=True)
class Rows:
    """The rows of a tensor of `lead` x columns, in tiles of `height` rows.

    Each outer index has `each` tiles of its own, unless its rows are few and odd: then all rows are
    numbered through, and a tile may hold rows of several outer indices; the result is then copied.
    """

    lead: tuple[int, ...]
    height: int
    each: int
    numbered_through: bool = False
    parts: int = 1  # of the tiles, all equal, where every size has to fit

    def __str__(self) -> str:
        return f"{math.prod(self.lead)} rows in {math.prod(self.tiles)} tiles of {self.height}"

    def faults(self, lead: Sequence[int]) -> Faults:
        """Of the rows of a tensor with these extents in front of its columns."""
        yield from unlike("rows", self.lead, tuple(lead))
        yield from uncovered("rows", self.count, self.each * self.height)
        yield from undivided("tiles", self.each, self.parts)

    @property
    def outer(self) -> tuple[int, ...]:
        """Extents in front of the tiles."""
        return () if self.numbered_through else self.lead[:-1]

    @property
    def count(self) -> int:
        """Rows for one outer index."""
        return _rows(self.lead, self.numbered_through)

    @property
    def tiles(self) -> tuple[int, ...]:
        """Extents of (outer, tile)."""
        return (*self.outer, self.each)

    @property
    def tasks(self) -> int:
        """Outer indices: each is a task of its own at least."""
        return math.prod(self.outer)

    @property
    def padded(self) -> int:
        """Rows with the copies."""
        return math.prod(self.tiles) * self.height

    def of(self, index: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """(outer, tile, row) -> the lead index; the last row again for those after it."""
        *outer, tile, row = index
        number = tir.Min(tile * self.height + row, self.count - 1)
        if not self.numbered_through:
            return (*outer, number)
        found: list[PrimExpr] = []
        for extent in self.lead[:0:-1]:
            found.insert(0, tir.floormod(number, extent))
            number = tir.floordiv(number, extent)
        return (number, *found)

    def where(self, lead: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """A lead index -> (outer, tile, row)."""
        *outer, number = lead
        if self.numbered_through:
            outer, number = [], lead[0]
            for extent, i in zip(self.lead[1:], lead[1:], strict=True):
                number = number * extent + i
        return (*outer, tir.floordiv(number, self.height), tir.floormod(number, self.height))


def _rows(lead: Sequence[int], through: bool) -> int:
    return math.prod(lead) if through else lead[-1]


@dataclass(frozen=True)
class Numbered:
    """How the rows of a tensor are numbered in tiles of some height: those of each outer index
    apart, or, if they are few and odd, all of them `through`. Their number may be symbolic.
    """

    lead: tuple[int, ...]
    through: bool
    symbolic: bool

    @property
    def count(self) -> int:
        """Rows for one outer index."""
        return _rows(self.lead, self.through)

    @property
    def by_outer(self) -> bool:
        """Whether one plan is for each outer index: of fixed rows, as many as there may be."""
        return for_every_size() and not self.symbolic

    @property
    def planned(self) -> int:
        """Rows that a plan is for."""
        return self.count if self.by_outer else math.prod(self.lead)


def numbered(lead: Sequence[int], height: int) -> Numbered:
    """The rows of a tensor with these extents in front of its columns."""
    last = lead[-1]
    left_over = last % height != 0 or is_symbolic(last)
    through = math.prod(lead[:-1]) > 1 and left_over and last < 4 * height
    return Numbered(tuple(lead), through, any(map(is_symbolic, lead if through else lead[-1:])))


def rows_in_tiles(found: Numbered, height: int, most: int, parts: int = 1) -> Rows:
    """Rows in tiles of `height`, of which a group has `most` at most.

    More tiles than that come in even groups: better a tile of copies than groups of one. A symbolic
    number of them comes in so many parts.
    """
    tiles = -(-found.count // height)
    if found.symbolic:
        return Rows(found.lead, height, -(-tiles // parts) * parts, found.through, parts)
    while tiles > most and divisor(tiles, most) <= most // 2:
        tiles += 1
    return Rows(found.lead, height, tiles, found.through)
