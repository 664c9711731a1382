"""Short lists of candidates for `choose`: what an author would try by hand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from ...language.decisions import choose

T = TypeVar("T")


def divisors(extent: int, most: int, least: int = 1) -> list[int]:
    """The divisors of an extent from `least` to `most`."""
    return [d for d in range(least, min(extent, most) + 1) if extent % d == 0]


def next_to(values: Iterable[T], default: T) -> list[T]:
    """The default between the values next to it on both sides."""
    known = list(values)
    at = known.index(default)
    return known[max(0, at - 1) : at + 2]


def best(values: Iterable[T], default: T, count: int = 3) -> list[T]:
    """The default and the first of the values, which come best first."""
    return [default, *[v for v in values if v != default][: count - 1]]


def _itself(value: T) -> T:
    return value


def decided(
    name: str, found: Sequence[T], key: Callable[[T], Hashable] = _itself, count: int = 3
) -> T:
    """The first of the values, which come best first, unless a tuner or a record decides for one of
    the next. Decisions know a value by its `key`; of several with one key the first counts.
    """
    known = {key(value): value for value in reversed(found)}
    usual = key(found[0])
    return known[choose(name, best(reversed(known), usual, count), usual)]
