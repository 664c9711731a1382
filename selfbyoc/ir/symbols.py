"""Numbers at which symbolic sizes are read.

Patterns, computes and schedules all ask about extents; so a graph is read at some sizes, which no
other extent of the function has, and what is made of it is learnt from several (codegen/symbolic).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..graph import Symbol

# Primes: no extent is a multiple by accident, and there are rows left over in any tile.
USUAL = (131, 113, 139, 107, 149, 103, 151, 109, 157, 127)


def usual_sizes(
    names: Iterable[str], known: Collection[int], most: Mapping[str, int] | None = None
) -> dict[str, Symbol]:
    """A size for each symbol that is none of the `known` extents; at most so large."""
    free = [size for size in USUAL if size not in known] or list(USUAL)
    found: dict[str, Symbol] = {}
    for name in names:
        limit = (most or {}).get(name, free[0])
        fits = (s for s in (*free, *range(limit, 0, -1)) if s <= limit)
        taken = {*known, *found.values()}
        found[name] = Symbol(next((s for s in fits if s not in taken), limit), name)
    return found
