"""A depthwise convolution and the pointwise ones around it by blocks of channels, as te.compute.

    x [C, H, W] -> sums [E/16, rows, columns, 16] -> framed, with zeros around -> the windows'
    lanes [E/16, rows, columns, 16] -> sums [rows, O/16, columns, 16] -> y [O, H, W]

Lanes are channels: windows, strides and borders then move whole vectors. Each stage has an axis of
chunks of rows, so that the schedule may hold one chunk of it, and of that some blocks of channels.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from ...._tvm import te, tir
from ..conv.direct import extents
from .form import Form
from .layers import LANES, Layer

Tensor = Any


def windows(image: Tensor, layer: Layer, f: Form) -> Tensor:
    """The depthwise convolution, each window written out: nothing is left to initialise."""
    taps = [(ky, kx) for ky in range(f.window[0]) for kx in range(f.window[1])]

    def element(n: Any, chunk: Any, b: Any, y: Any, t: Any, i: Any, lane: Any) -> Any:
        def term(ky: int, kx: int) -> Any:
            row, inside = f.under(0, chunk * f.rows + y, ky)
            row = row if f.chunks == 1 else y * f.strides[0] + ky * f.dilation[0]
            column, along = f.under(1, t * f.tile + i, kx)
            data = image(n, chunk, b, row, column, lane)
            if inside or along:
                data = tir.Select(tir.all(*inside, *along), data, tir.const(0, "float32"))
            return data * layer.weight(b, 0, ky, kx, lane)

        total = term(*taps[0])
        for tap in taps[1:]:
            total = total + term(*tap)
        return layer.applied(total, b * LANES + lane)

    shape = (*extents(image)[:3], f.rows, -(-f.out[1] // f.tile), f.tile, LANES)
    return te.compute(shape, element, name=f"{layer.conv.name}_lanes")


def projected(hidden: Tensor, layer: Layer) -> Tensor:
    """The pointwise products of the depthwise convolution's result."""
    steps = int(layer.weight.shape[1])
    fold = layer.channels // steps
    rc = te.reduce_axis((0, steps), name="rc")

    def element(n: Any, chunk: Any, y: Any, b: Any, t: Any, i: Any, lane: Any) -> Any:
        first = rc * fold
        channel = tir.floormod(first, LANES) + tir.floormod(lane, fold)
        data = hidden(n, chunk, tir.floordiv(first, LANES), y, t, i, channel)
        return te.sum(data * layer.weight(b, rc, 0, 0, lane), axis=[rc])

    batch, chunks, _, rows, tiles, tile, _ = extents(hidden)
    shape = (batch, chunks, rows, int(layer.weight.shape[0]), tiles, tile, LANES)
    return te.compute(shape, element, name=f"{layer.conv.name}_sums")


def result(sums: Tensor, layer: Layer, f: Form, residual: Tensor | None, name: str) -> Tensor:
    """The sums read out as an image, activated, and the residual added."""
    fold = layer.channels // int(layer.weight.shape[1])

    def element(n: Any, o: Any, y: Any, x: Any) -> Any:
        def part(j: int) -> Any:
            lane = o * fold + j
            where = (tir.floordiv(y, f.rows), tir.floormod(y, f.rows), tir.floordiv(lane, LANES))
            at = (tir.floordiv(x, f.tile), tir.floormod(x, f.tile), tir.floormod(lane, LANES))
            return sums(n, *where, *at)

        value = layer.applied(reduce(add, map(part, range(fold))), o)
        return value if residual is None else value + residual(n, o, y, x)

    return te.compute(layer.conv.outputs[0].shape, element, name=name)
