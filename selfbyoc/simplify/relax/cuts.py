"""Relax: what slices and items of a split read of a value."""

from __future__ import annotations

from tvm import relax

from ...ir.relax import Constant
from ...tvm import constant_numpy
from ...tvm.types import Expr, PrimExpr
from ..cut import Cut
from .exprs import is_op, open_shape, plain_numbers


def cut_of(value: Expr) -> Cut | None:
    """What a slice with a step of one, or an item, reads."""
    if is_op(value, "take") and isinstance(value.args[1], Constant):
        index = constant_numpy(value.args[1])
        extents = open_shape(value.args[0])
        if index.shape or value.attrs.axis is None or not extents:
            return None
        axis = int(value.attrs.axis) % len(extents)
        inside = _lies_in(int(index), int(index) + 1, extents[axis])
        return Cut(value.args[0], axis, int(index), int(index) + 1, True) if inside else None
    if not is_op(value, "strided_slice"):
        return None
    extents = open_shape(value.args[0])
    axes, begins, ends, *steps = map(plain_numbers, value.args[1:])
    if not extents or {len(axes), len(begins), len(ends)} != {1} or any(s != [1] for s in steps):
        return None
    (axis,), (begin,), (end,) = axes, begins, ends
    extent = extents[axis]
    end = min(end, extent) if isinstance(extent, int) else end  # PyTorch's "to the end"
    inside = _lies_in(begin, end, extent)
    return Cut(value.args[0], axis % len(extents), begin, end) if inside else None


def _lies_in(begin: int, end: int, extent: PrimExpr) -> bool:
    return isinstance(extent, int) and 0 <= begin < end <= extent


def item_of(item: Expr, split: Expr) -> Cut | None:
    """What one result of a split reads."""
    extents = open_shape(split.args[0])
    if not isinstance(item, relax.TupleGetItem) or not extents:
        return None
    axis = int(split.attrs.axis) % len(extents)
    if not isinstance(extents[axis], int):
        return None
    sizes = [int(field.shape.values[axis]) for field in split.ty.fields]
    begin = sum(sizes[: item.index])
    return Cut(split.args[0], axis, begin, begin + sizes[item.index])
