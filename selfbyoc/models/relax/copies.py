"""Arrays of which elements stand there several times, by numbers and sizes that may be open."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relax

from ...tvm.types import BlockBuilder, Expr
from .algebra import Algebra, Extent

Parts = tuple[Extent, ...]  # of an axis


def tiled(
    builder: BlockBuilder,
    algebra: Algebra,
    x: Expr,
    extents: Sequence[Extent],
    times: Sequence[Extent],
) -> Expr:
    """The whole array so many times along each axis: `a b a b`. Axes of 1 are put in front where
    there are more numbers.
    """
    old = [1] * (len(times) - len(extents)) + list(extents)
    axes = [
        ((e,), (e,)) if _is_one(n) else ((1, e), (n, e)) for e, n in zip(old, times, strict=True)
    ]
    return _written_out(builder, algebra, x, axes)


def spread(
    builder: BlockBuilder,
    algebra: Algebra,
    x: Expr,
    extents: Sequence[Extent],
    times: Sequence[Extent],
) -> Expr:
    """Each element so many times along each axis: `a a b b`."""
    axes = [
        ((e,), (e,)) if _is_one(n) else ((e, 1), (e, n))
        for e, n in zip(extents, times, strict=True)
    ]
    return _written_out(builder, algebra, x, axes)


def _is_one(times: Extent) -> bool:
    return isinstance(times, int) and times == 1


def _written_out(
    builder: BlockBuilder, algebra: Algebra, x: Expr, axes: Sequence[tuple[Parts, Parts]]
) -> Expr:
    """Split axes, of which one part is broadcast, and joined again."""
    old = [e for before, _ in axes for e in before]
    new = [e for _, after in axes for e in after]
    whole = [algebra.product(after) for _, after in axes]
    x = builder.emit(relax.op.reshape(x, relax.ShapeExpr(old)))
    x = builder.emit(relax.op.broadcast_to(x, relax.ShapeExpr(new)))
    return builder.emit(relax.op.reshape(x, relax.ShapeExpr(whole)))
