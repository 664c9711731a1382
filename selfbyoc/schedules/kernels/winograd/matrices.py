"""The matrices of Winograd convolutions F(m, r), and products with them as expressions. Those of
integers are in integers.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction as F

from ....tvm import tir
from ....tvm.types import PrimExpr
from .integers import WORD_DTYPE, matrices_of_words, sum_of_words

Matrix = Sequence[Sequence[float]]

# Where the polynomials of Toom and Cook are evaluated, infinity aside. The textbook's 0, +-1, +-2
# lose three times as much: rms errors of 3.8e-7 of the largest output against 1.9e-7, largest
# errors of 6.7e-6 against 1.7e-6 (64 channels). All are exact in float32.
# By the size of a tile, m + r - 1.
POINTS = {4: (F(0), F(1), F(-1)), 6: (F(0), F(3, 4), F(-3, 4), F(3, 2), F(-3, 2))}
FORMS = {3: (2, 4), 5: (2,)}  # the m by r, the extent of the window


def matrices(m: int, r: int, dtype: str = "float32") -> tuple[Matrix, Matrix, Matrix]:
    """(B^T, G, A^T) of F(m, r): the outputs are A^T ((G g) * (B^T d)), of words a multiple."""
    if dtype == WORD_DTYPE:
        return matrices_of_words(m, r)
    points = POINTS[m + r - 1]
    others = [[q for q in points if q != p] for p in points]
    input_ = [*([*_coefficients(rest), F(0)] for rest in others), _coefficients(points)]
    scales = [math.prod(p - q for q in rest) for p, rest in zip(points, others, strict=True)]
    window = [[p**j / s for j in range(r)] for p, s in zip(points, scales, strict=True)]
    output = [[*(p**i for p in points), F(int(i == m - 1))] for i in range(m)]
    return _floats(input_), _floats([*window, [*[F(0)] * (r - 1), F(1)]]), _floats(output)


def _coefficients(roots: Sequence[F]) -> list[F]:
    """Of the product of x - root, lowest power first."""
    found = [F(1)]
    for root in roots:
        pairs = zip([F(0), *found], [*found, F(0)], strict=True)
        found = [shifted - root * own for shifted, own in pairs]
    return found


def _floats(matrix: Sequence[Sequence[F]]) -> Matrix:
    return tuple(tuple(float(v) for v in row) for row in matrix)


def times(matrix: Matrix, index: PrimExpr, value: Callable[[int], PrimExpr]) -> PrimExpr:
    """Row `index` of matrix times vector; its loop is unrolled, and one of the sums stays."""
    total: Callable[..., PrimExpr] = sum_of_words if isinstance(matrix[0][0], int) else _sum
    sums = [total(row, value) for row in matrix]
    found = sums.pop()
    for i in range(len(sums) - 1, -1, -1):
        found = tir.Select(index == i, sums[i], found)
    return found


def _sum(row: Sequence[float], value: Callable[[int], PrimExpr]) -> PrimExpr:
    """A row times a vector, such that what rows have in common is written alike, and computed once.

    Points come as p and -p. Of two columns all terms are equal but for their signs; of two rows,
    the even terms are equal and the odd ones negated.
    """
    paired = [i for i in (1, 3) if i + 1 < len(row) and row[i] and abs(row[i]) == abs(row[i + 1])]
    terms = {i: value(i) for i, factor in enumerate(row) if factor and i - 1 not in paired}
    for i in paired:
        other = value(i + 1)
        terms[i] = terms[i] + other if row[i] == row[i + 1] else terms[i] - other
    if paired:
        return _linear([(row[i], term) for i, term in terms.items()])
    even = [(row[i], term) for i, term in terms.items() if i % 2 == 0]
    odd = [(row[i], term) for i, term in terms.items() if i % 2]
    if not even or not odd:
        return _linear(even or odd)
    if odd[0][0] < 0:
        return _linear(even) - _linear([(-factor, term) for factor, term in odd])
    return _linear(even) + _linear(odd)


def _linear(terms: Sequence[tuple[float, PrimExpr]]) -> PrimExpr:
    products = [t if f == 1 else t * tir.const(f, "float32") for f, t in terms]
    return functools.reduce(lambda a, b: a + b, products)
