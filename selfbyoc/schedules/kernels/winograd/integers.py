"""Winograd convolutions of integers that wrap at 2**32: exact in spite of that.

A word is two levels of 16 bits, the lower one as it is and the upper one times 2**16, so that sums
and differences of words are those of both; before words are multiplied, a borrow of the lower level
is given back (`settled`). Their products are summed up modulo 2**32.

Toom and Cook divide by differences of points. An odd factor has an inverse modulo 2**32, only
powers of two are lost bits of a sum. So there are two points of each class that fractions a/b have
modulo 2 (even, odd, of an even b): each is off another one by a single factor of two, and both
F(2, 3) and F(4, 3) lose two bits of a sum; with the textbook's 0, +-1, +-2 these were six. The
other factors are in the weights. Levels of 8 bits become 98 times as large, and weights 225 times:
16 bits hold both.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence

from ....tvm import tir
from ....tvm.types import PrimExpr
from ..words import WORDS

Matrix = Sequence[Sequence[int]]

LEVELS = min(WORDS)  # of a word, on every CPU
WORD_DTYPE = "int32"  # the dtype of two levels of 16 bits, and of sums of their products
FORMS_OF_WORDS = {3: (2, 4)}  # F(2, 5) leaves 16 bits
MOST_OF_WORDS = (1 << 29) // (255 * 128)  # products of a sum, of which two bits are lost
# The points a/b, infinity with them; by the size of a tile, m + r - 1.
FRACTIONS = {
    4: ((0, 1), (1, 1), (-1, 1), (1, 0)),
    6: ((0, 1), (1, 1), (-1, 1), (2, 1), (-1, 2), (1, 0)),
}  # fmt: skip


def scale(m: int, r: int) -> int:
    """What an output is multiplied by, down and along."""
    return math.lcm(*_denominators(FRACTIONS[m + r - 1]))


def matrices_of_words(m: int, r: int) -> tuple[Matrix, Matrix, Matrix]:
    """(B^T, G, A^T) of F(m, r): A^T ((G g) * (B^T d)) is `scale` times each output."""
    points = FRACTIONS[m + r - 1]
    whole = scale(m, r)
    input_ = [_forms([q for q in points if q != p]) for p in points]
    signs = [1 if next(v for v in row if v) > 0 else -1 for row in input_]
    window = [
        [whole // n * a**j * b ** (r - 1 - j) for j in range(r)]
        for n, (a, b) in zip(_denominators(points), points, strict=True)
    ]
    input_, window = (
        [[sign * v for v in row] for sign, row in zip(signs, matrix, strict=True)]
        for matrix in (input_, window)
    )
    output = [[a**i * b ** (m - 1 - i) for a, b in points] for i in range(m)]
    return input_, window, output


def _denominators(points: Sequence[tuple[int, int]]) -> list[int]:
    """Of each point what the others' forms are there."""
    return [math.prod(d * a - c * b for c, d in points if (c, d) != (a, b)) for a, b in points]


def _forms(points: Sequence[tuple[int, int]]) -> list[int]:
    """The coefficients of the product of b x - a y, lowest power of x first."""
    found = [1]
    for a, b in points:
        found = [b * up - a * own for up, own in zip([0, *found], [*found, 0], strict=True)]
    return found


def sum_of_words(row: Sequence[int], value: Callable[[int], PrimExpr]) -> PrimExpr:
    """A row times a vector: what has equal factors is added first, and then multiplied by shifts,
    for a vector's product of 32 bits is slow. Rows have such sums in common, perhaps negated.
    """
    by_factor: dict[int, list[int]] = {}
    for i in [*range(1, len(row)), 0]:
        if row[i]:
            by_factor.setdefault(abs(row[i]), []).append(i)
    plus: list[PrimExpr] = []
    minus: list[PrimExpr] = []
    for factor, places in by_factor.items():
        first, *rest = places
        total = value(first)
        for i in rest:
            total = total + value(i) if row[i] == row[first] else total - value(i)
        (plus if row[first] > 0 else minus).append(_shifted(total, factor))
    add = functools.partial(functools.reduce, operator.add)
    if not minus:
        return add(plus)
    return add(plus or [tir.const(0, WORD_DTYPE)]) - add(minus)


def _shifted(value: PrimExpr, factor: int) -> PrimExpr:
    bits = [i for i in range(factor.bit_length()) if factor >> i & 1]
    return functools.reduce(operator.add, [value << i if i else value for i in bits])


def settled(word: PrimExpr) -> PrimExpr:
    """A sum of words as two levels: a negative lower one has borrowed from the upper one."""
    return word + ((word & 0x8000) << 1)


def unscaled(total: PrimExpr, m: int, r: int) -> PrimExpr:
    """An output of words, of its multiple modulo 2**32."""
    whole = scale(m, r) ** 2
    twos = (whole & -whole).bit_length() - 1
    inverse = pow(whole >> twos, -1, 1 << 32)
    inverse -= (inverse >> 31) << 32
    return (total if inverse == 1 else total * inverse) >> twos
