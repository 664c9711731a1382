"""A transposed convolution: its weights by phases, the convolutions, and the interleaved write."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .....codegen.elementwise import Widened
from .....graph import OpCall
from .....tvm import te, tir
from .....tvm.types import PrimExpr, Stage, Tensor
from ....steps.tensors import View, extents, split_index
from ..form import Conv2d
from ..kernel import convolution
from .plan import Part, Side, TransposedPlan


@dataclass(frozen=True)
class TransposedStages:
    """The stages of each convolution by its name, and the image of all their pixels."""

    convs: Mapping[str, Any]
    result: Stage


def _section(weights: Tensor, part: Part) -> View | Widened:
    """A part's weights in the row of all, as the tensor that they are."""
    if isinstance(weights, Widened):
        return Widened(_section(weights.halves, part))

    def read(*index: PrimExpr) -> PrimExpr:
        at: PrimExpr = 0
        for i, extent in zip(index, part.packed, strict=True):
            at = at * extent + i
        return weights(at + part.start)

    return View(part.packed, weights.dtype, read)


def _image(rows: Tensor) -> View:
    """Rows [N, C, W] as images of height 1."""
    batch, channels, width = extents(rows)
    return View((batch, channels, 1, width), rows.dtype, lambda n, c, y, x: rows(n, c, x))


def pack(weight: Tensor, plan: TransposedPlan, call: OpCall) -> Tensor:
    """[I, O, H, W] -> the weights of all parts in a row, each as a direct convolution wants it."""

    def element(at: PrimExpr) -> PrimExpr:
        found = _packed(weight, plan, plan.parts[0], at)
        for part in plan.parts[1:]:
            found = tir.if_then_else(
                at >= part.start, _packed(weight, plan, part, at - part.start), found
            )
        return found

    return te.compute((plan.weights,), element, name=f"{weight.op.name}_packed")


def _packed(weight: Tensor, plan: TransposedPlan, part: Part, at: PrimExpr) -> PrimExpr:
    """Element `at` of a part's weights. Its channels: phases of one output channel together."""
    u = plan.upsampling
    index = []
    for extent in reversed(part.packed):
        at, own = split_index(at, extent)
        index.append(own)
    row, x, y, i, block = index
    channel = block * part.packed[-1] + row
    own, phase = split_index(channel, _phases(part))
    down, along = split_index(phase, part.along.count)
    taps = []
    for side, tap, of, stride in (
        (part.down, y, down, u.strides[0]),
        (part.along, x, along, u.strides[1]),
    ):
        taps.append(side.first + of + stride * (side.taps - 1 - tap))
    where = (i, tir.Min(own, u.out_channels - 1), *(taps[1:] if u.is_rows else taps))
    if part.packed[0] * part.packed[-1] == part.layer.kernel[0]:
        return weight(*where)
    inside = channel < part.layer.kernel[0]
    return tir.if_then_else(inside, weight(*where), tir.const(0, weight.dtype))


def transposed(inputs: Sequence[Tensor], call: OpCall, plan: TransposedPlan) -> TransposedStages:
    """The compute that stands in for a transposed convolution."""
    x, weights = inputs
    image = _image(x) if plan.upsampling.is_rows else x
    convs = {}
    for part in plan.parts:
        asked = Conv2d(image, _section(weights, part), part.layer.attrs, part.layer.out, part.name)
        convs[part.name] = convolution(asked, part.plan)
    shape = call.outputs[0].shape
    result = te.compute(shape, _pixel(plan, convs), name=call.name)
    return TransposedStages(convs, result)


def _pixel(plan: TransposedPlan, convs: Mapping[str, Any]) -> Callable[..., PrimExpr]:
    """A pixel of the result, out of the convolution of its phase."""
    u = plan.upsampling

    def element(n: PrimExpr, o: PrimExpr, *i: PrimExpr) -> PrimExpr:
        at = (0, *i) if u.is_rows else i
        sums = [at[axis] + u.before[axis] for axis in (0, 1)]
        phases = [tir.floormod(s, stride) for s, stride in zip(sums, u.strides, strict=True)]
        where = [
            tir.floordiv(s, stride) - first
            for s, stride, first in zip(sums, u.strides, plan.rows_from, strict=True)
        ]
        found: Any = None
        for part in reversed(plan.parts):
            value = _phase(convs[part.name].result, part, n, o, phases, where)
            here = [*_within(part.down, phases[0], u.strides[0])]
            here += _within(part.along, phases[1], u.strides[1])
            last = found is None and len(plan.parts) * _phases(part) == math.prod(u.strides)
            other = tir.const(0, "float32") if found is None else found
            found = value if last or not here else tir.if_then_else(tir.all(*here), value, other)
        return found

    return element


def _phases(part: Part) -> int:
    return part.down.count * part.along.count


def _within(side: Side, phase: PrimExpr, stride: int) -> list[PrimExpr]:
    """Whether a phase is of these; nothing where all are."""
    if side.count == stride:
        return []
    return [phase >= side.first, phase < side.first + side.count]


def _phase(
    result: Tensor,
    part: Part,
    n: PrimExpr,
    o: PrimExpr,
    phases: Sequence[PrimExpr],
    where: Sequence[PrimExpr],
) -> PrimExpr:
    """A pixel of a part. Where the phase is another's it is read too, at a place that there is."""
    at = [
        tir.Max(tir.Min(phase - side.first, side.count - 1), 0)
        for phase, side in zip(phases, (part.down, part.along), strict=True)
    ]
    channel = (o * part.down.count + at[0]) * part.along.count + at[1]
    return result(n, channel, *where)
