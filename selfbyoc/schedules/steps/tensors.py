"""What the computes and packed layouts of several kernels are written with."""

from __future__ import annotations

from collections.abc import Callable

from ..._tvm import te, tir
from ...language.types import Expr, Tensor


def extents(tensor: Tensor) -> tuple[int, ...]:
    """A tensor's shape as numbers."""
    return tuple(int(extent) for extent in tensor.shape)


def reduce_axes(**sizes: int) -> list[Expr]:
    """Axes to reduce over, by name."""
    return [te.reduce_axis((0, size), name=name) for name, size in sizes.items()]


def or_zero(
    index: Expr, count: int, padded: int, read: Callable[[Expr], Expr], dtype: str = "float32"
) -> Expr:
    """What is read at one of `padded` indices, of which those after the first `count` are zero."""
    if count == padded:
        return read(index)
    return tir.if_then_else(index < count, read(index), tir.const(0, dtype))


def reduced_in_lanes(
    read: Callable[..., Expr],
    rows: tuple[int, ...],
    count: int,
    how: Callable[..., Expr],
    name: str,
    lanes: int,
) -> tuple[Tensor, Tensor]:
    """[rows]: `how` (te.sum, te.max) over the elements of each row; and its partial results, one a
    lane.
    """
    k, lane = reduce_axes(k=count // lanes, lane=lanes)
    partial = te.compute(
        (*rows, lanes),
        lambda *i: how(read(*i[:-1], k * lanes + i[-1]), axis=k),
        name=f"{name}_lanes",
    )
    return te.compute(rows, lambda *i: how(partial(*i, lane), axis=lane), name=name), partial
