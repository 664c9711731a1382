"""What the computes and packed layouts of several kernels are written with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...language.decisions import is_symbolic
from ...tvm import te, tir
from ...tvm.types import PrimExpr, Tensor


@dataclass(frozen=True, eq=False)
class View:
    """A tensor read as another one, of this shape and dtype: no stage of its own."""

    shape: Sequence[PrimExpr]
    dtype: str
    read: Callable[..., PrimExpr]

    def __call__(self, *index: PrimExpr) -> PrimExpr:
        """An element."""
        return self.read(*index)


def extents(tensor: Tensor) -> tuple[int, ...]:
    """A tensor's shape as numbers."""
    return tuple(int(extent) for extent in tensor.shape)


def reduce_axes(**sizes: int) -> list[PrimExpr]:
    """Axes to reduce over, by name."""
    return [te.reduce_axis((0, size), name=name) for name, size in sizes.items()]


def split_index(index: PrimExpr, size: int) -> tuple[PrimExpr, PrimExpr]:
    """Which block of so many an index is in, and where in it."""
    return tir.floordiv(index, size), tir.floormod(index, size)


def or_zero(
    index: PrimExpr,
    count: int,
    padded: int,
    read: Callable[[PrimExpr], PrimExpr],
    dtype: str = "float32",
) -> PrimExpr:
    """What is read at one of `padded` indices, of which those after the first `count` are zero."""
    if count == padded and not is_symbolic(count):
        return read(index)
    return tir.if_then_else(index < count, read(index), tir.const(0, dtype))


def in_vectors(
    read: Callable[..., PrimExpr], count: int, lanes: int, outside: PrimExpr | None = None
) -> Callable[..., PrimExpr]:
    """Reads a row of `count` elements in whole vectors: after its last one comes `outside`, or
    that one again.
    """
    if count % lanes == 0 and not is_symbolic(count):
        return read

    def element(*i: PrimExpr) -> PrimExpr:
        # Not `i[-1] < count`: TVM would take it for granted where the element is read, though both
        # sides of a select are.
        near = tir.Min(i[-1], count - 1)
        value = read(*i[:-1], near)
        return value if outside is None else tir.Select(near == i[-1], value, outside)

    return element


def reduced_in_lanes(
    read: Callable[..., PrimExpr],
    rows: tuple[int, ...],
    count: int,
    how: Callable[..., PrimExpr],
    name: str,
    lanes: int,
    attrs: Mapping[str, int] | None = None,
) -> tuple[Tensor, Tensor]:
    """[rows]: `how` (te.sum, te.max) over the elements of each row; and its partial results, one a
    lane.
    """
    k, lane = reduce_axes(k=-(-count // lanes), lane=lanes)
    nothing = None if how is te.max else tir.const(0, "float32")
    element = in_vectors(read, count, lanes, nothing)
    partial = te.compute(
        (*rows, lanes),
        lambda *i: how(element(*i[:-1], k * lanes + i[-1]), axis=k),
        name=f"{name}_lanes",
        attrs=attrs,
    )
    whole = te.compute(rows, lambda *i: how(partial(*i, lane), axis=lane), name=name, attrs=attrs)
    return whole, partial
