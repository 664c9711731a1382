"""What an integer of a kernel is of the sizes that the kernel was made for.

Loops over tiles, clamped indices and shapes are all `a * ceil(size / tile) + b`, of one symbol, of
the product of two, or with the product of two such counts. The constants follow from the integers
of some kernels, and what they say of others must hold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Sizes = Mapping[str, int]  # of each symbol

MOST_TILE = 256


@dataclass(frozen=True)
class Tiles:
    """ceil(size / tile) of one symbol, or of the product of several."""

    symbols: tuple[str, ...]
    tile: int = 1

    def at(self, sizes: Sizes) -> int:
        """How many there are."""
        return -(-math.prod(sizes[name] for name in self.symbols) // self.tile)


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
    symbols = tuple(points[0])
    pairs = list(itertools.combinations(symbols, 2))
    alone = [*((name,) for name in symbols), *pairs]
    forms: Iterator[tuple[Tiles, ...]] = itertools.chain(
        ((Tiles(of, tile),) for of in alone for tile in tiles),
        (
            (Tiles((x,), one), Tiles((y,), two))
            for x, y in pairs
            for one, two in itertools.product(tiles, tiles)
        ),
    )
    for counts in forms:
        line = _line([math.prod(c.at(p) for c in counts) for p in points], values)
        if line is not None:
            terms = ((line[0], counts), (line[1], ()))
            return Formula(tuple(term for term in terms if term[0]))
    return None


def _line(xs: Sequence[int], ys: Sequence[int]) -> tuple[int, int] | None:
    """The integers a and b of y = a * x + b, if there are such."""
    first = next((i for i, x in enumerate(xs) if x != xs[0]), 0)
    if first == 0 or (ys[first] - ys[0]) % (xs[first] - xs[0]):
        return None
    a = (ys[first] - ys[0]) // (xs[first] - xs[0])
    b = ys[0] - a * xs[0]
    return (a, b) if all(y == a * x + b for x, y in zip(xs, ys, strict=True)) else None
