"""A depthwise convolution and the pointwise ones around it by blocks of channels, as te.compute.

    x [C, H, W] -> sums [E/v, bands, tiles, tile, v] -> framed -> the windows' lanes
    [E/v, rows, columns, v] -> sums [bands, O/v, tiles, tile, v] -> y [O, H, W]

Lanes are channels: windows, strides and borders then move whole vectors. Each stage has an axis of
chunks of rows, so that the schedule may hold one chunk of it, and of that some vectors of channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from ....codegen.info.ops import Ops
from ....tvm import te, tir
from ....tvm.own_ops import word_of_bfloat16
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import reduce_axes, split_index
from ..bfloat16 import WORD, steps_of, times
from ..conv.depth import in_parts
from ..conv.staged import StagedStages
from . import staged
from .expand import Frame, framed
from .layers import Layer, layers
from .pack import read_vector
from .plan import SeparablePlan
from .staged import StagedPlan

Read = Callable[..., PrimExpr]  # index -> element


@dataclass(frozen=True)
class Stages:
    """The stages by role."""

    frame: Frame
    windows: Tensor
    taps: Tensor  # the sums over windows
    parts: Tensor | None  # what the result's sums add, if they are cut
    sums: Tensor
    rows: Tensor | None  # the sums with pixels in lanes
    result: Tensor
    tables: tuple[Tensor, ...]  # values of each channel
    weights: tuple[Tensor, ...]  # those that are packed at run time


def inverted_residual(
    x: Tensor, ops: Ops, plan: SeparablePlan | StagedPlan, **args: Tensor
) -> Stages | StagedStages:
    """Expand, depthwise, project, and the residual if the block has one."""
    convs = layers(ops, args, ("expand", "depth", "project"), plan.padded)
    residual = x if any(call.kind == "add" for call in ops) else None
    return _block(x, convs, residual, list(ops)[-1].name, plan)


def depthwise_pointwise(
    x: Tensor, ops: Ops, plan: SeparablePlan | StagedPlan, **args: Tensor
) -> Stages | StagedStages:
    """Depthwise, then pointwise."""
    convs = layers(ops, args, ("depth", "point"), plan.padded)
    return _block(x, convs, None, list(ops)[-1].name, plan)


def _block(
    x: Tensor,
    convs: Sequence[Layer],
    residual: Tensor | None,
    name: str,
    plan: SeparablePlan | StagedPlan,
) -> Stages | StagedStages:
    if isinstance(plan, StagedPlan):
        return staged.compute(x, convs, residual, name, plan)
    *expand, depth, project = convs
    frame = framed(x, expand[0] if expand else None, plan, depth.conv.name)
    hidden, taps = _windows(frame.result, depth, plan)
    parts, sums = _projected(hidden, project, plan)
    rows = None if plan.in_squares else _rows(sums, project, plan)
    image = _result(sums, rows, project, plan, residual, name)
    tables = tuple(table for layer in convs for table in layer.tables)
    weights = tuple(layer.weight for layer in convs if isinstance(layer.weight, te.Tensor))
    return Stages(frame, hidden, taps, parts, sums, rows, image, tables, weights)


def _windows(image: Tensor, layer: Layer, plan: SeparablePlan) -> tuple[Tensor, Tensor]:
    """The depthwise convolution, and its sums over the windows."""
    f, frame = plan.form, plan.frame.pixels
    ky, kx = reduce_axes(ky=f.window[0], kx=f.window[1])

    def product(
        n: PrimExpr, chunk: PrimExpr, v: PrimExpr, y: PrimExpr, column: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        (row, inside), (at, along) = f.under_row(y, ky), f.under_column(column, kx)
        data = image(n, chunk, v, *frame.where(row, at), lane)
        if inside or along:
            data = tir.Select(tir.all(*inside, *along), data, tir.const(0, "float32"))
        weight = read_vector(layer.weight, plan.lanes, v, 0, (ky, kx), lane)
        return te.sum(data * weight, axis=[ky, kx])

    shape = (int(image.shape[0]), f.chunks, plan.hidden, f.rows, f.pitch, plan.lanes)
    sums = te.compute(shape, product, name=f"{layer.conv.name}_sums")

    def element(
        n: PrimExpr, chunk: PrimExpr, v: PrimExpr, y: PrimExpr, column: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        return layer.applied(sums(n, chunk, v, y, column, lane), v * plan.lanes + lane)

    if plan.words[1]:
        shape, element = (*shape[:-1], plan.lanes // WORD), _in_words(element, layer, plan)
    return te.compute(shape, element, name=f"{layer.conv.name}_lanes"), sums


def _in_words(element: Callable[..., PrimExpr], layer: Layer, plan: SeparablePlan) -> Read:
    """Neighbouring lanes of a vector of channels as words, zero after the last channel: what lies
    there, times zero, may be no number.
    """
    channels = int(layer.conv.outputs[0].shape[1])

    def real(v: PrimExpr, *index: PrimExpr) -> PrimExpr:
        *before, lane = index
        value = element(*before[:2], v, *before[2:], lane)
        if channels % WORD == 0:
            return value
        is_real = v * plan.lanes + lane < channels
        return tir.Select(is_real, value, tir.const(0, "float32"))

    def word(n: PrimExpr, chunk: PrimExpr, v: PrimExpr, *index: PrimExpr) -> PrimExpr:
        *pixel, at = index
        return word_of_bfloat16(*(real(v, n, chunk, *pixel, at * WORD + i) for i in range(WORD)))

    return word


def _projected(hidden: Tensor, layer: Layer, plan: SeparablePlan) -> tuple[Tensor | None, Tensor]:
    """The pointwise products of the depthwise convolution's result, and their parts."""
    fold, lanes, pixels = plan.fold, plan.lanes, plan.sums.pixels
    product, each = times(plan.words[1]), steps_of(lanes, plan.words[1])
    depth = steps_of(layer.channels, plan.words[1]) // fold // plan.parts
    (rc,) = reduce_axes(rc=depth)

    def element(
        n: PrimExpr,
        chunk: PrimExpr,
        band: PrimExpr,
        v: PrimExpr,
        t: PrimExpr,
        i: PrimExpr,
        lane: PrimExpr,
        part: PrimExpr,
    ) -> PrimExpr:
        step = part * depth + rc
        first = step * fold
        at = tir.floormod(first, each) + tir.floormod(lane, fold)
        data = hidden(n, chunk, tir.floordiv(first, each), *pixels.pixel(band, t, i), at)
        weight = read_vector(layer.weight, lanes, v, step, (0, 0), lane)
        return te.sum(product(data, weight), axis=[rc])

    outer = (int(hidden.shape[0]), plan.form.chunks, pixels.bands, plan.outputs)
    shape = (*outer, pixels.tiles, pixels.tile, lanes)
    return in_parts(shape, plan.parts, element, f"{layer.conv.name}_sums")


def _rows(sums: Tensor, layer: Layer, plan: SeparablePlan) -> Tensor:
    """The sums of each channel, transposed: [bands, O/v, v, pixels]."""
    pixels = plan.sums.pixels

    def element(
        n: PrimExpr, chunk: PrimExpr, band: PrimExpr, v: PrimExpr, lane: PrimExpr, p: PrimExpr
    ) -> PrimExpr:
        return sums(n, chunk, band, v, *split_index(p, pixels.tile), lane)

    outer = (int(sums.shape[0]), plan.form.chunks, pixels.bands, plan.outputs)
    shape = (*outer, plan.lanes, pixels.tiles * pixels.tile)
    return te.compute(shape, element, name=f"{layer.conv.name}_rows")


def _result(
    sums: Tensor,
    rows: Tensor | None,
    layer: Layer,
    plan: SeparablePlan,
    residual: Tensor | None,
    name: str,
) -> Tensor:
    """The sums as an image, activated, and the residual added."""
    f, fold, lanes, pixels = plan.form, plan.fold, plan.lanes, plan.sums.pixels

    def element(n: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        band, at = plan.sums.pixels.place(tir.floormod(y, f.rows), x)

        def part(j: int) -> PrimExpr:
            v, lane = split_index(o * fold + j, lanes)
            where = (tir.floordiv(y, f.rows), band, v)
            if rows is not None:
                return rows(n, *where, lane, at)
            return sums(n, *where, *split_index(at, pixels.tile), lane)

        value = layer.applied(reduce(add, map(part, range(fold))), o)
        return value if residual is None else value + residual(n, o, y, x)

    return te.compute(layer.conv.outputs[0].shape, element, name=name)
