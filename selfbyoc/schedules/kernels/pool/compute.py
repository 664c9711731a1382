"""Pools as te.compute.

Row by row there is no padded copy: the rows of a window into one, then along that one. A window of
k rows and columns costs 2 k operations an element instead of k * k, the rows are read where they
lie, and what is between stays in L1. Under a horizontal stride all positions are computed and some
are taken: that is one access with a stride for each result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from ....graph import OpCall
from ....ops.vocabulary import compute_of
from ....ops.windows import window_count
from ....tvm import dtype_of, te, tir
from ....tvm.starts import lowest
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import reduce_axes
from ..conv.pixels.compute import PixelStages, pooled
from ..conv.pixels.plan import PixelPlan
from .plan import PoolPlan, RowPlan, WholePlan

Combine = Callable[[PrimExpr, PrimExpr], PrimExpr]


@dataclass(frozen=True)
class RowStages:
    """Row by row: `down` the windows, `every` place along a row where a stride takes some."""

    down: Tensor
    every: Tensor | None
    result: Tensor


def max_pool2d(inputs: Sequence[Tensor], call: OpCall, plan: PoolPlan) -> Any:
    """NCHW max_pool2d; the padding never wins."""
    (x,), form = inputs, plan.form
    least = lowest(dtype_of(x))
    if isinstance(form, RowPlan):
        return _by_rows(x, call, form, tir.Max, least, lambda value, *_: value)
    if isinstance(form, PixelPlan):
        return pooled(x, call, form, te.max, least, call.name)
    return compute_of("max_pool2d")(inputs, call)


def avg_pool2d(inputs: Sequence[Tensor], call: OpCall, plan: PoolPlan) -> Any:
    """NCHW avg_pool2d over the elements inside the image, or over all of the padding too."""
    (x,), form = inputs, plan.form
    if isinstance(form, RowPlan):
        return _mean_by_rows(x, call, form)
    if isinstance(form, WholePlan):
        return _mean_of_image(x, call)
    if isinstance(form, PixelPlan):
        return _mean_of_pixels(x, call, form)
    return compute_of("avg_pool2d")(inputs, call)


def _by_rows(
    x: Tensor,
    call: OpCall,
    plan: RowPlan,
    combine: Combine,
    fill: PrimExpr,
    last: Callable[..., PrimExpr],
) -> RowStages:
    """`last` of `combine` over each window, at (n, c, y, x); `fill` is outside the image."""
    down, along, shape = plan.down, plan.along, tuple(call.outputs[0].shape)

    def vertical(n: PrimExpr, c: PrimExpr, y: PrimExpr, at: PrimExpr) -> PrimExpr:
        def row(k: int) -> PrimExpr:
            place = y * down.stride + k * down.dilation
            return down.read(place, lambda r: x(n, c, r, at - along.before), fill)

        value = reduce(combine, map(row, range(down.size)))
        if not along.is_padded:
            return value
        inside = tir.all(at >= along.before, at < along.before + along.extent)
        return tir.if_then_else(inside, value, fill)

    rows = te.compute((*shape[:3], plan.columns), vertical, name=f"{call.name}_down")

    def horizontal(n: PrimExpr, c: PrimExpr, y: PrimExpr, at: PrimExpr) -> PrimExpr:
        taps = (rows(n, c, y, at + k * along.dilation) for k in range(along.size))
        return reduce(combine, taps)

    if along.stride == 1:
        every, read = None, horizontal
    else:
        extents = (*shape[:3], plan.columns - along.reach)
        every = te.compute(extents, horizontal, name=f"{call.name}_along")

        def read(n: PrimExpr, c: PrimExpr, y: PrimExpr, at: PrimExpr) -> PrimExpr:
            return every(n, c, y, at * along.stride)

    result = te.compute(shape, lambda *i: last(read(*i), *i), name=call.name)
    return RowStages(rows, every, result)


def _mean_by_rows(x: Tensor, call: OpCall, plan: RowPlan) -> RowStages:
    """What a window is divided by goes by row and column."""
    dtype, counted = dtype_of(x), _counts(x, call)
    one = tir.const(1, dtype)

    def share(at: PrimExpr, n: int) -> PrimExpr:
        return one / counted(at, n).astype(dtype)

    if not (plan.down.is_padded or plan.along.is_padded):
        whole = tir.const(1 / (plan.down.size * plan.along.size), dtype)
        last: Callable[..., PrimExpr] = lambda value, *_: value * whole  # noqa: E731
    else:
        width = call.outputs[0].shape[3:]
        columns = te.compute(width, lambda z: share(z, 1), name=f"{call.name}_columns")

        def last(value: PrimExpr, _n: PrimExpr, _c: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
            return value * (share(y, 0) * columns(z))

    return _by_rows(x, call, plan, lambda a, b: a + b, tir.const(0, dtype), last)


def _mean_of_pixels(x: Tensor, call: OpCall, plan: PixelPlan) -> PixelStages:
    zero, counted = tir.const(0, dtype_of(x)), _counts(x, call)
    sums = pooled(x, call, plan, te.sum, zero, f"{call.name}_sum")

    def mean(n: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        count = counted(y, 0) * counted(z, 1)
        return sums.result(n, c, y, z) * (tir.const(1, dtype_of(x)) / count.astype(dtype_of(x)))

    return replace(sums, result=te.compute(call.outputs[0].shape, mean, name=call.name))


def _mean_of_image(x: Tensor, call: OpCall) -> Tensor:
    """Padding adds nothing, so that an image is summed as it lies (512x14x14: 26.5 us window by
    window, 4.9 so; two cores of Zen 5, Nov 2026).
    """
    dtype, counted = dtype_of(x), _counts(x, call)
    axes = reduce_axes(r2=int(x.shape[2]), r3=int(x.shape[3]))
    total = te.compute(
        call.outputs[0].shape,
        lambda n, c, y, z: te.sum(x(n, c, *axes), axis=axes),
        name=f"{call.name}_sum",
    )
    first = tir.const(0, "int32")
    share = tir.const(1, dtype) / (counted(first, 0) * counted(first, 1)).astype(dtype)
    return te.compute(total.shape, lambda *i: total(*i) * share, name=call.name)


def _counts(x: Tensor, call: OpCall) -> Callable[[PrimExpr, int], PrimExpr]:
    return window_count(call, int(x.shape[2]), int(x.shape[3]))
