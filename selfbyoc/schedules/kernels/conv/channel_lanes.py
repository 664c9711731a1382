"""Direct convolution of small images with output channels as lanes: 7 x 7 pixels fill 77% of the
pixels' lanes, 14 x 14 88%.

A register tile is one row of pixels by one or two vectors of channels; results are turned over when
they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._tvm import te, tir
from .lanes import Plan

LANES = 16  # channels of a packed block
MOST_WIDTH = 20  # of an image: 28x28 took 1 to 14% longer, and wider ones fill lanes of pixels

Tensor = Any


def fits(p: Plan, groups: int, rows: int) -> bool:
    """Whether blocks of channels are full vectors, for rows of pixels that fill registers."""
    return groups == 1 and rows == LANES and 4 <= p.width <= MOST_WIDTH


def pays(p: Plan) -> bool:
    """Whether lanes of pixels are none."""
    return p.use < 0.9 and p.width <= 14


def convolution(read: Any, weight: Tensor, p: Plan, out: Sequence[int], name: str) -> Tensor:
    """The sums with channels last, and the result read out of them."""
    blocks, per_group, high, wide, lanes = (int(extent) for extent in weight.shape)
    rc = te.reduce_axis((0, per_group), name="rc")
    ry, rx = te.reduce_axis((0, high), name="ry"), te.reduce_axis((0, wide), name="rx")

    def element(n: Any, b: Any, y: Any, x: Any, lane: Any) -> Any:
        data = read(n, rc, y * p.pitch + x, ry, rx)
        return te.sum(data * weight(b, rc, ry, rx, lane), axis=[rc, ry, rx])

    sums = te.compute((out[0], blocks, p.height, p.width, lanes), element, name=f"{name}_channels")
    return te.compute(
        out,
        lambda n, o, y, x: sums(n, tir.floordiv(o, lanes), y, x, tir.floormod(o, lanes)),
        name=name,
    )
