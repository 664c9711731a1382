"""Extents, and the attributes of windows: what models have, and what nobody thought of."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

Pair = tuple[int, int]

TINY = (1, 1, 1, 2, 3)
BORDERS = (4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129)
PRIMES = (11, 13, 19, 29, 37, 53, 61, 97, 101, 131, 197, 251, 509, 1021)
USUAL = (
    14, 20, 28, 36, 40, 56, 72, 96, 112, 120, 144, 160, 192, 224, 240, 256, 288, 320, 384, 512, 576,
    672, 768, 960, 1000, 1024, 1152, 1280, 1536, 2048, 3072, 4096,
)  # fmt: skip
WINDOWS: tuple[Pair, ...] = (
    (1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (2, 2), (4, 4), (1, 3), (3, 1), (1, 7),
    (7, 1), (5, 1), (1, 5), (2, 3), (11, 11),
)  # fmt: skip


def extent(rng: Random, most: int) -> int:
    """From 1 to `most`: tiny, next to a vector, prime, as in a model, or any, large ones rarely."""
    pool = rng.choice((TINY, BORDERS, BORDERS, PRIMES, USUAL, USUAL, None, None, None))
    if pool is not None:
        return min(rng.choice(pool), most)
    few = rng.choice((10, 70, 70, 300, most))
    if rng.random() < 0.01:  # huge, of whatever it is
        return rng.randint(most, 20 * most)
    return rng.randint(1, min(few, most))


def batch(rng: Random) -> int:
    """Mostly one image, or few."""
    return rng.choice((1, 1, 1, 1, 2, 3, 4, 8)) if rng.random() < 0.85 else extent(rng, 300)


def image(rng: Random, channels: int | None = None, axes: int = 2) -> tuple[int, ...]:
    """[N, C, H, W] or [N, C, W]: large images have few channels."""
    wide = rng.choice((9, 20, 40, 70, 130, 260, 1100))
    most = 4096 if wide <= 70 else 256
    pixels = [extent(rng, wide) for _ in range(axes)]
    if axes == 2 and rng.random() < 0.4:
        pixels[1] = pixels[0]
    return (batch(rng), channels or extent(rng, most), *pixels)


def window(rng: Random, known: Sequence[int] = ()) -> Pair:
    """As it is in a case, usual, or any up to 9; rarely a large one."""
    if known and rng.random() < 0.4:
        return known[0], known[-1]
    if rng.random() < 0.7:
        return rng.choice(WINDOWS)
    most = 9 if rng.random() < 0.9 else 40
    return rng.randint(1, most), rng.randint(1, most)


def strides(rng: Random) -> Pair:
    """Of one, two, or unequal."""
    if rng.random() < 0.65:
        return rng.choice(((1, 1), (1, 1), (2, 2)))
    most = 4 if rng.random() < 0.9 else 11
    return rng.randint(1, most), rng.randint(1, most)


def dilation(rng: Random) -> Pair:
    """Mostly none."""
    if rng.random() < 0.7:
        return 1, 1
    return rng.choice(((2, 2), (1, 2), (2, 1), (3, 1), (rng.randint(1, 6), rng.randint(1, 6))))


def padding(rng: Random, reach: Sequence[int]) -> tuple[int, int, int, int]:
    """None, what keeps the size, or any on each side: up to what a window reaches, rarely more."""
    how = rng.random()
    if how < 0.3:
        return 0, 0, 0, 0
    if how < 0.6:
        before = [r // 2 for r in reach]
        return before[0], before[1], reach[0] - before[0], reach[1] - before[1]
    more = 0 if how < 0.95 else 5
    top, left, bottom, right = (rng.randint(0, r + more) for r in (*reach, *reach))
    return top, left, bottom, right


def divisor(rng: Random, number: int) -> int:
    """Any divisor."""
    return rng.choice([d for d in range(1, number + 1) if number % d == 0])
