"""What the windows of a depthwise convolution read, by vectors of channels: the image, or what a
pointwise or a network's first convolution makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, reduce_axes, split_index
from ..bfloat16 import RoundedWords, times
from .layers import Layer, is_pointwise
from .pack import read_vector
from .plan import SeparablePlan


@dataclass(frozen=True)
class Frame:
    """What the windows read, and what it is made of."""

    result: Tensor
    sums: Tensor | None = None  # of an expansion
    rows: Tensor | None = None  # of a picture, or of an image in words


def framed(x: Tensor, expand: Layer | None, plan: SeparablePlan, name: str) -> Frame:
    """The rows under a chunk's windows in vectors of channels.

    One chunk of an expansion has the image's rows alone; else rows of padding are zeros.
    """
    pixels, batch = plan.frame.pixels, int(x.shape[0])
    shape = (
        batch, plan.form.chunks, plan.hidden, pixels.bands, pixels.tiles, pixels.tile, plan.lanes,
    )  # fmt: skip
    if expand is None:
        return Frame(te.compute(shape, _from_image(x, plan), name=f"{name}_framed"))
    sums, rows = _expanded(x, expand, plan, shape)

    def element(
        n: PrimExpr,
        chunk: PrimExpr,
        v: PrimExpr,
        band: PrimExpr,
        t: PrimExpr,
        i: PrimExpr,
        lane: PrimExpr,
    ) -> PrimExpr:
        value = expand.applied(sums(n, chunk, v, band, t, i, lane), v * plan.lanes + lane)
        return plan.form.or_padding(chunk, plan.frame.pixels.pixel(band, t, i)[0], value)

    return Frame(te.compute(shape, element, name=f"{name}_framed"), sums, rows)


def _from_image(x: Tensor, plan: SeparablePlan) -> Callable[..., PrimExpr]:
    """Read an image; channels after its last one repeat it, and are not read."""
    channels, pixels = int(x.shape[1]), plan.frame.pixels

    def read(
        n: PrimExpr,
        chunk: PrimExpr,
        v: PrimExpr,
        band: PrimExpr,
        t: PrimExpr,
        i: PrimExpr,
        lane: PrimExpr,
    ) -> PrimExpr:
        channel = v * plan.lanes + lane
        channel = channel if channels % plan.lanes == 0 else tir.Min(channel, channels - 1)
        q, column = pixels.pixel(band, t, i)
        value = x(n, channel, plan.form.inside(chunk, q), column)
        return plan.form.or_padding(chunk, q, value)

    return read


def _expanded(
    x: Tensor, layer: Layer, plan: SeparablePlan, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor | None]:
    """The products of the rows under a chunk's windows: pointwise, or of a network's first
    convolution; and the rows of a picture, or of words, if there are.
    """
    rows, product = None, times(plan.words[0])
    image = RoundedWords(x, 1, f"{layer.conv.name}_words") if plan.words[0] else x
    if not is_pointwise(layer.conv):
        rows = _rows(image, layer, plan)
        read, axes = _windows(rows, layer, plan)
    elif plan.words[0]:
        rows = _rows_of_words(image, layer, plan)
        read, axes = _pixels_of(rows)
    else:
        read, axes = _pixels(x, plan)

    def element(
        n: PrimExpr,
        chunk: PrimExpr,
        v: PrimExpr,
        band: PrimExpr,
        t: PrimExpr,
        i: PrimExpr,
        lane: PrimExpr,
    ) -> PrimExpr:
        q, column = plan.frame.pixels.pixel(band, t, i)
        rc, *window = axes
        weight = read_vector(layer.weight, plan.lanes, v, rc, window or (0, 0), lane)
        return te.sum(product(read(n, chunk, q, column), weight), axis=axes)

    return te.compute(shape, element, name=f"{layer.conv.name}_sums"), rows


def _pixels(x: Tensor, plan: SeparablePlan) -> tuple[Callable[..., PrimExpr], list[PrimExpr]]:
    """What a product of a pixel reads at (n, chunk, frame's row, column), and its axis."""
    (rc,) = axes = reduce_axes(rc=int(x.shape[1]))

    def read(n: PrimExpr, chunk: PrimExpr, q: PrimExpr, column: PrimExpr) -> PrimExpr:
        return x(n, rc, plan.form.inside(chunk, q), column)

    return read, axes


def _rows_of_words(x: RoundedWords, layer: Layer, plan: SeparablePlan) -> Tensor:
    """The rows under a chunk, each channel's rounded once."""
    batch, channels, _, wide = extents(x)
    form = plan.form

    def element(
        n: PrimExpr, chunk: PrimExpr, c: PrimExpr, q: PrimExpr, column: PrimExpr
    ) -> PrimExpr:
        return x(n, c, form.inside(chunk, q), column)

    shape = (batch, form.chunks, channels, form.framed, wide)
    return te.compute(shape, element, name=f"{layer.conv.name}_rows")


def _pixels_of(rows: Tensor) -> tuple[Callable[..., PrimExpr], list[PrimExpr]]:
    """As `_pixels`, of rows under a chunk."""
    (rc,) = axes = reduce_axes(rc=int(rows.shape[2]))

    def read(n: PrimExpr, chunk: PrimExpr, q: PrimExpr, column: PrimExpr) -> PrimExpr:
        return rows(n, chunk, rc, q, column)

    return read, axes


def _windows(
    rows: Tensor, layer: Layer, plan: SeparablePlan
) -> tuple[Callable[..., PrimExpr], list[PrimExpr]]:
    """What a product of a window reads at (n, chunk, frame's row, column), and its axes."""
    attrs, window = layer.conv.attrs, layer.conv.inputs[1].shape[2:]
    (down, along), (dh, dw), left = attrs["strides"], attrs["dilation"], attrs["padding"][1]
    rc, ry, rx = axes = reduce_axes(rc=int(rows.shape[2]), ry=window[0], rx=window[1])

    def read(n: PrimExpr, chunk: PrimExpr, q: PrimExpr, column: PrimExpr) -> PrimExpr:
        at = column * along + rx * dw - left + _before(left, plan)
        return rows(n, chunk, rc, q * down + ry * dh, *split_index(at, plan.lanes))

    return read, axes


def _rows(x: Tensor | RoundedWords, layer: Layer, plan: SeparablePlan) -> Tensor:
    """The rows under a chunk in vectors, zeros around the image: before it whole vectors of them,
    so that vectors are inside or not.
    """
    f, lanes = plan.form, plan.lanes
    batch, channels, high, wide = extents(x)
    attrs, window = layer.conv.attrs, layer.conv.inputs[1].shape[2:]
    (down, along), (dh, dw), (top, left) = attrs["strides"], attrs["dilation"], attrs["padding"][:2]
    end = (f.image[1] - 1) * along + (window[1] - 1) * dw - left + 1
    before = _before(left, plan)
    shape = (
        batch,
        f.chunks,
        channels,
        (f.framed - 1) * down + (window[0] - 1) * dh + 1,
        -(-(end + before) // lanes),
        lanes,
    )

    def element(
        n: PrimExpr, chunk: PrimExpr, c: PrimExpr, r: PrimExpr, v: PrimExpr, lane: PrimExpr
    ) -> PrimExpr:
        row, vector = f.row_of(chunk, 0) * down + r - top, v - before // lanes
        column = vector * lanes + lane
        past = vector < wide // lanes if wide % lanes == 0 else column < wide
        inside = tir.all(row >= 0, row < high, vector >= 0, past)
        return tir.if_then_else(inside, x(n, c, row, column), tir.const(0, x.dtype))

    return te.compute(shape, element, name=f"{layer.conv.name}_rows")


def _before(left: int, plan: SeparablePlan) -> int:
    """Columns of zeros before an image, of which `left` are read: whole vectors."""
    return -(-left // plan.lanes) * plan.lanes
