"""An op with a constant between two reshapes, the second of which undoes the first, is that op of
the constant in the other axes.

    reshape(reshape(x, (2, 64, 3, 49, 49)) + mask, (128, 3, 49, 49))  ->  x + mask'

Transformers of windows (Swin) add the mask of a shifted image so, between their scores and the
softmax; without the reshapes all is one attention kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import mul

import numpy as np

from ..ir.rewriting import Editor, Made
from ..tvm.types import Expr

MOST = 1 << 20  # elements of a constant that is repeated: those of a mask, for each picture
OPS = ("add", "subtract", "multiply", "divide")


def between_reshapes(made: Made, to: Editor) -> Expr | None:
    """A reshape that undoes one before an op with a constant."""
    inner = to.made(made.args[0]) if made.kind == "reshape" else None
    if inner is None or inner.kind not in OPS:
        return None
    shape, between = _numbers(to, made.call), _numbers(to, inner.call)
    for side in (0, 1):
        moved, constant = to.made(inner.args[side]), to.array(inner.args[1 - side])
        if moved is None or moved.kind != "reshape" or constant is None:
            continue
        x = moved.args[0]
        if shape is None or between is None or _numbers(to, x) != shape:
            continue
        if _numbers(to, moved.call) != between or 0 in shape:
            continue  # the constant has axes of its own, or there is nothing
        told = told_in_axes(constant, between, shape, to)
        if told is None:
            continue
        return to.emit(inner.kind, *((x, told) if side == 0 else (told, x)))
    return None


def told_in_axes(
    constant: np.ndarray, before: Sequence[int], after: Sequence[int], to: Editor
) -> Expr | None:
    """A constant of one shape in the axes of another; None where it would be too large."""
    found = in_axes(constant, before, after)
    if found.size > max(constant.size, MOST):
        return None
    return to.constant(np.ascontiguousarray(found))


def in_axes(constant: np.ndarray, before: Sequence[int], after: Sequence[int]) -> np.ndarray:
    """What is broadcast to one shape, for the same elements in another: only along those axes that
    it differs along.
    """
    whole = constant.reshape(*[1] * (len(before) - constant.ndim), *constant.shape)
    full, found = list(whole.shape), []
    for old, new in _groups(before, after):
        varies = any(whole.shape[n] > 1 for n in old)
        for n in old if varies else ():
            full[n] = before[n]
        found += [after[n] for n in new] if varies else [1] * len(new)
    return np.broadcast_to(whole, full).reshape(found)


def _groups(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Axes of two shapes that hold the same part of the elements, the least parts that there are.
    Axes of one element are with those before them, the first ones with what follows.
    """
    reached = [list(accumulate(shape, mul)) for shape in (before, after)]
    ends = sorted({prod(before), *set.intersection(*map(set, reached))} - {1} or {1})
    for start, end in pairwise([0, *ends]):
        old, new = ([n for n, at in enumerate(each) if start < at <= end] for each in reached)
        yield old, new


def _numbers(to: Editor, x: Expr) -> list[int] | None:
    """A tensor's extents, where all are known."""
    shape = to.shape(x)
    return shape if shape is not None and all(isinstance(n, int) for n in shape) else None
