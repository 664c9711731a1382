"""Ranges of a symbolic size, each of which is tuned at one size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...graph import sizes_text
from ...ir.symbols import Range
from ...tvm.types import Attr
from ..external import External
from ..tuning_record import TUNED_AT, Tuned

# The largest size of a range, and the one that stands for it: with rows left over in any tile.
RANGES = ((1, 1), (8, 5), (32, 19), (128, 83), (None, 331))
OTHERS = ((1, 1), (None, 8))  # of other symbols, such as a batch


def representatives(source: External) -> Iterator[dict[str, int]]:
    """The sizes at which a kernel is tuned: one for each range that it is called in."""
    *others, main = source.symbols
    called = [_called(OTHERS, source.range_of(name)) for name in others]
    for found in itertools.product(*called, _called(RANGES, source.range_of(main))):
        yield dict(zip((*others, main), found, strict=True))


def _called(ranges: Sequence[tuple[int | None, int]], within: Range) -> list[int]:
    """The sizes that stand for those ranges which have a size in another one."""
    firsts = (1, *(most + 1 for most, _ in ranges if most is not None))
    return [
        size
        for first, (most, size) in zip(firsts, ranges, strict=True)
        if (most is None or within.least <= most) and (within.most is None or first <= within.most)
    ]


def decisions_at(source: External, sizes: Mapping[str, int]) -> dict[str, Attr]:
    """What tuning decided for the range of these sizes; nothing where it did not."""
    *others, main = source.symbols
    at = {name: _representative(OTHERS, sizes[name]) for name in others}
    at[main] = _representative(RANGES, sizes[main])
    tuned = source.attrs.get(TUNED_AT, {}).get(sizes_text(at))
    return {} if tuned is None else dict(Tuned(**tuned).decisions)


def tuned_by(
    source: External, name: str, size: Callable[[Mapping[str, int]], int]
) -> dict[str, Attr]:
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
