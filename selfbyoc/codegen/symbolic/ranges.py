"""Ranges of a symbolic size, each of which is tuned at one size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...graph import sizes_text
from ..external import External
from ..tuned import TUNED_AT, Tuned

# The largest size of a range, and the one that stands for it: with rows left over in any tile.
RANGES = ((1, 1), (8, 5), (32, 19), (128, 83), (None, 331))
OTHERS = ((1, 1), (None, 8))  # of other symbols, such as a batch


def representatives(source: External) -> Iterator[dict[str, int]]:
    """The sizes at which a kernel is tuned: one for each range."""
    *others, main = source.symbols
    of_others = [[size for _, size in OTHERS]] * len(others)
    for found in itertools.product(*of_others, [size for _, size in RANGES]):
        yield dict(zip((*others, main), found, strict=True))


def decisions_at(source: External, sizes: Mapping[str, int]) -> dict[str, Any]:
    """What tuning decided for the range of these sizes; nothing where it did not."""
    *others, main = source.symbols
    at = {name: _representative(OTHERS, sizes[name]) for name in others}
    at[main] = _representative(RANGES, sizes[main])
    tuned = source.attrs.get(TUNED_AT, {}).get(sizes_text(at))
    return {} if tuned is None else dict(Tuned(**tuned).decisions)


def tuned_by(
    source: External, name: str, size: Callable[[Mapping[str, int]], int]
) -> dict[str, Any]:
    """What tuning decided for a kernel's sizes, by the range of one other symbol, `size` of them:
    where several are of one range, the first.
    """
    tuned = source.attrs.get(TUNED_AT, {})
    found: dict[str, Any] = {}
    for sizes in representatives(source) if tuned else ():
        text = sizes_text(sizes)
        if text in tuned:
            at = _representative(RANGES, size(sizes))
            found.setdefault(sizes_text({name: at}), tuned[text])
    return found


def _representative(ranges: tuple[tuple[int | None, int], ...], size: int) -> int:
    return next(found for most, found in ranges if most is None or size <= most)
