"""A square of vectors transposed, in shuffles that are an instruction each on x86 and NEON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tvm.types import PrimExpr

BLOCK = 4  # elements of 128 bits: shuffles of few cycles stay within these blocks, or move them
Shuffle = Callable[[Any, Any, Sequence[int]], Any]  # two vectors, places of both -> one


def transposed(rows: Sequence[PrimExpr], shuffle: Shuffle) -> list[PrimExpr]:
    """The columns of 4, 8 or 16 rows of as many elements."""
    groups = [_four(rows[g : g + BLOCK], shuffle, len(rows)) for g in range(0, len(rows), BLOCK)]
    columns: list[Any] = [None] * len(rows)
    for c in range(BLOCK):
        for k, column in enumerate(_moved([group[c] for group in groups], shuffle)):
            columns[BLOCK * k + c] = column
    return columns


def _four(rows: Sequence[PrimExpr], shuffle: Shuffle, lanes: int) -> list[PrimExpr]:
    """Four rows -> their columns c, c + 4, c + 8 .. as the blocks of a vector, for c up to 4."""

    def unpack(a: PrimExpr, b: PrimExpr, count: int, high: bool) -> PrimExpr:
        """`count` elements of each in turn, of the lower or higher half of each block."""
        places: list[int] = []
        for block in range(2 * high, lanes, BLOCK):
            for at in range(block, block + 2, count):
                places += [*range(at, at + count), *range(lanes + at, lanes + at + count)]
        return shuffle(a, b, places)

    first, second = (
        [unpack(rows[i], rows[i + 1], 1, high) for high in (False, True)] for i in (0, 2)
    )
    pairs = zip(first, second, strict=True)
    return [unpack(a, b, 2, high) for a, b in pairs for high in (False, True)]


def _moved(vectors: list[PrimExpr], shuffle: Shuffle) -> list[PrimExpr]:
    """A square of blocks transposed: of 1, 2 or 4 vectors with as many blocks."""
    count = len(vectors)
    if count == 1:
        return vectors

    def pick(a: PrimExpr, b: PrimExpr, blocks: Sequence[int]) -> PrimExpr:
        """These blocks of both."""
        both = [*blocks, *(count + block for block in blocks)]
        return shuffle(a, b, [BLOCK * k + i for k in both for i in range(BLOCK)])

    if count == 2:
        return [pick(vectors[0], vectors[1], (k,)) for k in range(2)]
    even, odd = ([pick(vectors[i], vectors[i + 1], (k, k + 2)) for i in (0, 2)] for k in range(2))
    return [pick(a, b, (k, k + 2)) for k in range(2) for a, b in (even, odd)]
