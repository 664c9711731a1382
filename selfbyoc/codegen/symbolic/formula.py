"""What an integer of a kernel is of the sizes that the kernel was made for.

Loops over tiles, clamped indices and shapes are all `a * ceil(size / tile) + b`, of one symbol or
of the product of two. The constants follow from the integers of some kernels, and what they say
of others must hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Sizes = Mapping[str, int]  # of each symbol
Point = tuple[tuple[str, int], ...]  # the same as a key

MOST_TILE = 256


@dataclass(frozen=True)
class Tiles:
    """ceil(size / tile) of one symbol."""

    symbol: str
    tile: int = 1

    def at(self, sizes: Sizes) -> int:
        """How many there are."""
        return -(-sizes[self.symbol] // self.tile)


@dataclass(frozen=True)
class Formula:
    """The sum of `factor` times the product of some counts of tiles; of no counts: the factor."""

    terms: tuple[tuple[int, tuple[Tiles, ...]], ...]

    def at(self, sizes: Sizes) -> int:
        """Its value."""
        total = 0
        for factor, counts in self.terms:
            for count in counts:
                factor *= count.at(sizes)
            total += factor
        return total

    @property
    def tiles(self) -> set[Tiles]:
        """The counts of tiles that it names."""
        return {count for _, counts in self.terms for count in counts}


def fitted(points: Sequence[Sizes], values: Sequence[int], known: Iterable[int]) -> Formula | None:
    """The formula that gives these values at these sizes, or None; no tile but the `known` ones:
    integers of the kernel.
    """
    if len(set(values)) == 1:
        return Formula(((values[0], ()),))
    tiles = [1, *sorted({t for t in known if 1 < t <= MOST_TILE})]
    for symbol in points[0]:
        found = _of_one(symbol, points, values, tiles)
        if found is not None:
            return found
    pairs = itertools.combinations(points[0], 2)
    every = (_of_two(pair, points, values, tiles) for pair in pairs)
    return next((found for found in every if found is not None), None)


def _of_one(
    symbol: str, points: Sequence[Sizes], values: Sequence[int], tiles: Sequence[int]
) -> Formula | None:
    """a * ceil(size / tile) + b."""
    for count in (Tiles(symbol, tile) for tile in tiles):
        line = _line([count.at(p) for p in points], values)
        if line is not None:
            return _formula((line[0], (count,)), (line[1], ()))
    return None


def _line(xs: Sequence[int], ys: Sequence[int]) -> tuple[int, int] | None:
    """The integers a and b of y = a * x + b, if there are such."""
    first = next((i for i, x in enumerate(xs) if x != xs[0]), 0)
    if first == 0 or (ys[first] - ys[0]) % (xs[first] - xs[0]):
        return None
    a = (ys[first] - ys[0]) // (xs[first] - xs[0])
    b = ys[0] - a * xs[0]
    return (a, b) if all(y == a * x + b for x, y in zip(xs, ys, strict=True)) else None


def _of_two(
    symbols: Sequence[str], points: Sequence[Sizes], values: Sequence[int], tiles: Sequence[int]
) -> Formula | None:
    """a * x * y + b, of counts x and y."""
    for one, two in itertools.product(tiles, tiles):
        x, y = Tiles(symbols[0], one), Tiles(symbols[1], two)
        line = _line([x.at(p) * y.at(p) for p in points], values)
        if line is not None:
            return _formula((line[0], (x, y)), (line[1], ()))
    return None


def _formula(*terms: tuple[int, tuple[Tiles, ...]]) -> Formula:
    return Formula(tuple(term for term in terms if term[0]))
