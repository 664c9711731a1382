"""What an integer of a kernel is of the sizes that the kernel was made for.

Loops over tiles, clamped indices and shapes are all `a * ceil((size + shift) / tile) + b`, of one
symbol, of the product of two, or with the product of two such counts: the rows of a pooled image
are `ceil((height - 1) / 2)`. The queries of 7 heads that share keys are `7 * n`, in tiles of that.
Of what is joined of two open sizes they are `a * m + b * n + c`. The constants follow from the
integers of some kernels, and what they say of others must hold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

Sizes = Mapping[str, int]  # of each symbol

MOST_TILE = 256


@dataclass(frozen=True)
class Tiles:
    """ceil((times * size + shift) / tile) of one symbol, or of the product of several."""

    symbols: tuple[str, ...]
    tile: int = 1
    shift: int = 0
    times: int = 1

    def at(self, sizes: Sizes) -> int:
        """How many there are."""
        size = self.times * math.prod(sizes[name] for name in self.symbols)
        return -(-(size + self.shift) // self.tile)


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


def fitted_all(
    points: Sequence[Sizes], columns: Sequence[tuple[int, ...]]
) -> dict[tuple[int, ...], Formula | None]:
    """The formulas that give each of these columns of values at these sizes; None of those that
    none gives. No tile but what is an integer of every kernel, or the product of two.
    """
    known = {column[0] for column in columns if len(set(column)) == 1}
    usable = sorted({t for t in known if 1 < t <= MOST_TILE})
    products = {a * b for a, b in itertools.combinations(usable, 2) if a * b <= MOST_TILE}
    tiles = [1, *usable, *sorted(products - {*usable})]
    found = {column: _of_one(points, column, tiles) for column in columns}
    several = {multiple for f in found.values() if f is not None for multiple in _multiples(f)}
    for column in [column for column, formula in found.items() if formula is None]:
        forms = ((Tiles(of, tile, 0, by),) for of, by in sorted(several) for tile in tiles)
        found[column] = _first(points, column, forms)
    counts = {count for f in found.values() if f is not None for count in _counts(f)}
    counts |= {Tiles((name,), tile) for name in points[0] for tile in (1, *usable)}
    for column in [column for column, formula in found.items() if formula is None]:
        found[column] = _of_two(points, column, counts) or _of_sum(points, column)
    return found


def _of_one(points: Sequence[Sizes], values: Sequence[int], tiles: Sequence[int]) -> Formula | None:
    """The formula of one count of tiles; those of a shifted size come last."""
    if len(set(values)) == 1:
        return Formula(((values[0], ()),))
    symbols = tuple(points[0])
    alone = [*((name,) for name in symbols), *itertools.combinations(symbols, 2)]
    whole = [(Tiles(of, tile),) for of in alone for tile in tiles]
    shifted = ((Tiles(of, t, s),) for of in alone for t in tiles for s in range(1 - t, 0))
    return _first(points, values, itertools.chain(whole, shifted))


def _multiples(formula: Formula) -> Iterator[tuple[tuple[str, ...], int]]:
    """What a formula is where that is so many times one symbol: tiles may be of that."""
    (factor, counts), *rest = formula.terms
    if factor > 1 and not rest and len(counts) == 1 and counts[0] == Tiles(counts[0].symbols[:1]):
        yield counts[0].symbols, factor


def _counts(formula: Formula) -> Iterator[Tiles]:
    """What a formula is by itself, where that is a count of tiles of one symbol."""
    (factor, counts), *rest = formula.terms
    if factor == 1 and len(counts) == 1 and len(counts[0].symbols) == 1:
        (count,), by = counts, rest[0][0] if rest else 0
        if rest and rest[0][1]:
            return  # of two sizes
        yield replace(count, shift=count.shift + by * count.tile)


def _of_two(
    points: Sequence[Sizes], values: Sequence[int], counts: Iterable[Tiles]
) -> Formula | None:
    """The formula of a product of two counts."""
    ordered = sorted(counts, key=lambda count: (count.symbols, abs(count.shift), count.tile))
    pairs = itertools.combinations(ordered, 2)
    return _first(points, values, (p for p in pairs if p[0].symbols != p[1].symbols))


def _of_sum(points: Sequence[Sizes], values: Sequence[int]) -> Formula | None:
    """The formula of a sum of two sizes."""
    for names in itertools.combinations(points[0], 2):
        rows = np.array([[*(p[name] for name in names), 1] for p in points])
        solved, *_ = np.linalg.lstsq(rows, np.array(values), rcond=None)
        a, b, c = (round(factor) for factor in solved)
        if [a * x + b * y + c for x, y, _ in rows.tolist()] == list(values):
            m, n = ((Tiles((name,)),) for name in names)
            return Formula(tuple(term for term in ((a, m), (b, n), (c, ())) if term[0]))
    return None


def _first(
    points: Sequence[Sizes], values: Sequence[int], forms: Iterable[tuple[Tiles, ...]]
) -> Formula | None:
    """The first of these forms that fits."""
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
