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
from ....ops.windows import window_count, window_sums
from ....tvm import dtype_of, te, tir
from ....tvm.starts import lowest
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import reduce_axes
from ..conv.pixels.compute import pooled
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
    """NCHW avg_pool2d of floats: over the elements inside the image, or over the padding too."""
    (x,), one = inputs, tir.const(1, dtype_of(inputs[0]))
    if plan.form is None:
        return compute_of("avg_pool2d")(inputs, call)
    if isinstance(plan.form, RowPlan):
        return _mean_by_rows(x, call, plan.form)
    return averages(x, call, plan, lambda total, n: total * (one / n.astype(dtype_of(x))))


def averages(x: Tensor, call: OpCall, plan: PoolPlan, mean: Combine) -> Any:
    """`mean` of the sum of what lies under each window and of how many elements that is divided by;
    of any dtype that sums are exact enough in.
    """
    form = plan.form
    if isinstance(form, WholePlan):
        return _mean_of_image(x, call, mean)
    counted, zero = _counts(x, call), tir.const(0, dtype_of(x))

    def last(total: PrimExpr, _n: PrimExpr, _c: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        return mean(total, counted(y, 0) * counted(z, 1))

    if isinstance(form, RowPlan):
        return _by_rows(x, call, form, lambda a, b: a + b, zero, last)
    shape = call.outputs[0].shape
    if not isinstance(form, PixelPlan):
        total = window_sums(x, call)
        return te.compute(shape, lambda *i: last(total(*i), *i), name=call.name)
    sums = pooled(x, call, form, te.sum, zero, f"{call.name}_sum")
    means = te.compute(shape, lambda *i: last(sums.result(*i), *i), name=call.name)
    return replace(sums, result=means)


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


def _mean_of_image(x: Tensor, call: OpCall, mean: Combine) -> Tensor:
    """Padding adds nothing, so that an image is summed as it lies (512x14x14: 26.5 us window by
    window, 4.9 so; two cores of Zen 5, Nov 2026).
    """
    places = [call.attrs["layout"].index(letter) for letter in "HW"]
    axes = reduce_axes(**{f"r{at}": int(x.shape[at]) for at in places})

    def sum_of(*i: PrimExpr) -> PrimExpr:
        index = [axes[places.index(at)].var if at in places else own for at, own in enumerate(i)]
        return te.sum(x(*index), axis=axes)

    total = te.compute(call.outputs[0].shape, sum_of, name=f"{call.name}_sum")
    first, size = tir.const(0, "int32"), int(x.shape[places[0]]) * int(x.shape[places[1]])
    count: PrimExpr = tir.const(size, "int32")
    if call.kind == "avg_pool2d":
        counted = _counts(x, call)
        count = counted(first, 0) * counted(first, 1)
    return te.compute(total.shape, lambda *i: mean(total(*i), count), name=call.name)


def _counts(x: Tensor, call: OpCall) -> Callable[[PrimExpr, int], PrimExpr]:
    return window_count(call, int(x.shape[2]), int(x.shape[3]))
