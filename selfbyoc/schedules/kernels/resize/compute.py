"""Resized images as te.compute, one axis after the other.

Where a row or a column of the result lies is a table at the start of the kernel: TVM computes it
for each element. Which rows those are is a formula of whole numbers, which TVM can follow; so are
the columns where the loop over them is unrolled, and each lane of a vector is a known pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....graph import OpCall
from ....ops.resize import Table, table
from ....tvm import te
from ....tvm.types import PrimExpr, Tensor
from .plan import ALONG, CHANNELS, ResizePlan


@dataclass(frozen=True)
class ResizeStages:
    """The pass that comes `first`, `every` column of a row, and what is written."""

    first: Tensor | None
    every: Tensor | None
    result: Tensor


def resize2d(inputs: Sequence[Tensor], call: OpCall, plan: ResizePlan) -> ResizeStages:
    """Linear or nearest, NCHW or NHWC."""
    (x,), method = inputs, call.attrs["method"]
    down = table(plan.down, method, f"{call.name}_rows", computed=True)
    along = table(plan.along, method, f"{call.name}_columns", computed=plan.width > 0)
    shape = tuple(call.outputs[0].shape)
    if plan.first == CHANNELS:
        return ResizeStages(None, None, _by_channels(x, call, down, along))
    if plan.first == ALONG:
        height = plan.down.extent
        first = _along(x, (*shape[:2], height, shape[3]), along, f"{call.name}_along")
        return ResizeStages(first, None, _down(first, shape, down, call.name))
    if method == "linear" and plan.width:
        first = _down(x, (*shape[:3], plan.along.extent), down, f"{call.name}_down")
        return ResizeStages(first, None, _along(first, shape, along, call.name))
    if method == "linear":
        first = _down(x, (*shape[:3], plan.along.extent), down, f"{call.name}_down")
        every = _along(first, shape, along, f"{call.name}_along")
    else:
        first = None

        def pixel(n: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
            return down(lambda row: along(lambda column: x(n, c, row, column), z), y)

        every = te.compute(shape, pixel, name=f"{call.name}_along")
    result = te.compute(shape, lambda *i: every(*i), name=call.name)
    return ResizeStages(first, every, result)


def _along(x: Tensor, shape: tuple[int, ...], along: Table, name: str) -> Tensor:
    def mixed(n: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        return along(lambda column: x(n, c, y, column), z)

    return te.compute(shape, mixed, name=name)


def _down(x: Tensor, shape: tuple[int, ...], down: Table, name: str) -> Tensor:
    def mixed(n: PrimExpr, c: PrimExpr, y: PrimExpr, z: PrimExpr) -> PrimExpr:
        return down(lambda row: x(n, c, row, z), y)

    return te.compute(shape, mixed, name=name)


def _by_channels(x: Tensor, call: OpCall, down: Table, along: Table) -> Tensor:
    def pixel(n: PrimExpr, y: PrimExpr, z: PrimExpr, c: PrimExpr) -> PrimExpr:
        def row(r: PrimExpr) -> PrimExpr:
            return along(lambda column: x(n, r, column, c), z)

        return down(row, y)

    return te.compute(call.outputs[0].shape, pixel, name=call.name)
