"""Numbers at which symbolic sizes are read.

Patterns, computes and schedules all ask about extents; so a graph is read at some sizes, which no
other extent of the function has, and what is made of it is learnt from several (codegen/symbolic).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..graph import Symbol

# Primes: no extent is a multiple by accident, and there are rows left over in any tile.
USUAL = (131, 113, 139, 107, 149, 103, 151, 109, 157, 127)


@dataclass(frozen=True)
class Range:
    """The sizes that somebody promises of a symbol: from `least` to `most` (None: any above)."""

    least: int = 0
    most: int | None = None

    def __str__(self) -> str:
        """As `--size` takes it: `1..512`, `8..`, `..512`; `any`."""
        most = "" if self.most is None else str(self.most)
        return f"{self.least or ''}..{most}" if self.least or most else "any"

    def holds(self, size: int) -> bool:
        """Whether a size is one of them."""
        return self.least <= size and (self.most is None or size <= self.most)

    def nearest(self, size: int) -> int:
        """A size, or the end that it is beyond."""
        size = max(size, self.least)
        return size if self.most is None else min(size, self.most)


def usual_sizes(
    names: Iterable[str], known: Collection[int], ranges: Mapping[str, Range] | None = None
) -> dict[str, Symbol]:
    """A size for each symbol that is none of the `known` extents, and in its range."""
    free = [size for size in USUAL if size not in known] or list(USUAL)
    found: dict[str, Symbol] = {}
    for name in names:
        within = (ranges or {}).get(name, Range())
        last = within.nearest(free[0])
        nearby = (*range(last, 0, -1), *range(last + 1, last + len(USUAL)))
        fits = (s for s in (*free, *nearby) if within.holds(s))
        taken = {*known, *found.values()}
        found[name] = Symbol(next((s for s in fits if s not in taken), last), name)
    return found
