"""Layouts (blocks.py) as index maps, as TVM writes those of Relax, and what an index map means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ops.layout_text import Parts, outer_first
from ...tvm import tir
from ...tvm.types import PrimExpr
from .blocks import rank_of

# A digit of an index: (the axis, by what it is divided, how many values it has; 0: all the rest)
_Digit = tuple[int, int, int]


def split_axes(inputs: Sequence[PrimExpr], results: Sequence[PrimExpr]) -> Parts | None:
    """The layout of `(n, c // 16, h, w, c % 16)`; None of any other map."""
    digits = [_digit(result, inputs) for result in results]
    known = [digit for digit in digits if digit is not None]
    if len(known) < len(results):
        return None
    for axis in range(len(inputs)):
        own = [(stride, count) for a, stride, count in known if a == axis]
        counts = [count for _, count in own]
        inner = [math.prod(counts[n + 1 :]) for n in range(len(own))]
        if not own or counts.index(min(counts)) or counts.count(0) != 1:
            return None
        if [stride for stride, _ in own] != inner:
            return None
    return tuple((axis, count) for axis, _, count in known)


def _digit(expr: PrimExpr, inputs: Sequence[PrimExpr]) -> _Digit | None:
    """`v`, `v // a`, `v % b` or `v // a % b`."""
    count, stride = 0, 1
    if isinstance(expr, tir.FloorMod) and isinstance(expr.b, tir.IntImm):
        expr, count = expr.a, int(expr.b)
    if isinstance(expr, tir.FloorDiv) and isinstance(expr.b, tir.IntImm):
        expr, stride = expr.a, int(expr.b)
    axis = next((n for n, v in enumerate(inputs) if v.same_as(expr)), None)
    return None if axis is None else (axis, stride, count)


def joined_axes(inputs: Sequence[PrimExpr], results: Sequence[PrimExpr]) -> Parts | None:
    """The layout that `(n, c * 16 + d, h, w)` reads; None of any other map."""
    found: dict[int, tuple[int, int]] = {}  # an input -> its axis, and by what it is multiplied
    for axis, result in enumerate(results):
        factors = _factors(result, inputs)
        if factors is None or found.keys() & factors.keys():
            return None
        found |= {at: (axis, factor) for at, factor in factors.items()}
    if len(found) < len(inputs):
        return None
    parts: list[tuple[int, int]] = []
    for at in range(len(inputs)):
        axis, factor = found[at]
        outside = [f for n, (a, f) in found.items() if a == axis and f > factor]
        parts.append((axis, min(outside) // factor if outside else 0))
    done = tuple(parts)
    return done if _are_digits(done, found) else None


def _are_digits(parts: Parts, found: dict[int, tuple[int, int]]) -> bool:
    """Whether the factors are those of blocks that lie from outer to inner."""
    for at, (axis, factor) in found.items():
        inner = math.prod(size for a, size in parts[at + 1 :] if a == axis)
        if inner != factor:
            return False
    return outer_first(parts)


def _factors(expr: PrimExpr, inputs: Sequence[PrimExpr]) -> dict[int, int] | None:
    """The factors of a sum of inputs, by input; None of anything else."""
    if isinstance(expr, tir.Add):
        both = _factors(expr.a, inputs), _factors(expr.b, inputs)
        left, right = both
        return None if left is None or right is None or left.keys() & right else {**left, **right}
    factor = 1
    if isinstance(expr, tir.Mul) and isinstance(expr.b, tir.IntImm):
        expr, factor = expr.a, int(expr.b)
    at = next((n for n, v in enumerate(inputs) if v.same_as(expr)), None)
    return None if at is None or factor < 1 else {at: factor}


def splitting(parts: Parts) -> tir.IndexMap:
    """The map of a plain layout to one of parts."""
    strides = [_inside(parts, at) for at in range(len(parts))]

    def mapped(*axes: PrimExpr) -> list[PrimExpr]:
        each = zip(parts, strides, strict=True)
        return [_digit_of(axes[axis], stride, size) for (axis, size), stride in each]

    return tir.IndexMap.from_func(mapped, ndim=rank_of(parts))


def _digit_of(index: PrimExpr, stride: int, size: int) -> PrimExpr:
    outside = index if stride == 1 else index // stride
    return outside % size if size else outside


def joining(parts: Parts) -> tir.IndexMap:
    """The map of a layout of parts to the plain one."""
    strides = [_inside(parts, at) for at in range(len(parts))]

    def mapped(*indices: PrimExpr) -> list[PrimExpr]:
        sums: dict[int, PrimExpr] = {}
        for index, (axis, _), stride in zip(indices, parts, strides, strict=True):
            part = index if stride == 1 else index * stride
            sums[axis] = sums[axis] + part if axis in sums else part
        return [sums[axis] for axis in range(rank_of(parts))]

    return tir.IndexMap.from_func(mapped, ndim=len(parts))


def _inside(parts: Parts, at: int) -> int:
    """How many elements of an axis one step of a part is."""
    return math.prod(size for axis, size in parts[at + 1 :] if axis == parts[at][0])
