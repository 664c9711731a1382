"""Cache blocking of sums: how many input channels are multiplied before the next tile.

What a tile reads of all input channels is often more than L1 holds, and each of its passes, a few
output channels each, reads all of it from L2 again. So the sums of some channels are added for
every tile of a task, then those of the next: the weights of these channels stay in L1 for all
tiles, and the pixels of a tile for all rows of weights. The partial sums are in L2.
"""

from __future__ import annotations

from collections.abc import Callable

from ....language.decisions import choose
from ....machine import Machine
from ....tvm import te
from ....tvm.types import PrimExpr, Shape, Tensor
from .layer import Layer

SHARE = 0.75  # of L1; the rest is for partial sums on their way
LEAST_STEPS = 128  # of k between a load and a store of the sums
MOST_PARTS = 2  # times as many parts as fit, for parts that are equal


def depth_of(layer: Layer, channel_bytes: int, cpu: Machine) -> int:
    """The input channels of a convolution that are summed at a time: `channel_bytes` is what a tile
    reads of one.
    """
    channels = layer.kernel[1]
    return steps_at_a_time(layer.name, channels, channel_bytes, cpu, taps=layer.steps // channels)


def steps_at_a_time(
    name: str, channels: int, channel_bytes: int, cpu: Machine, *, taps: int = 1, unit: int = 1
) -> int:
    """The channels that are summed at a time, all where they fit in L1; else parts that are equal
    and made of whole units. A channel is `taps` steps of a sum.
    """
    fitting = max(1, int(SHARE * cpu.l1_bytes) // channel_bytes, -(-LEAST_STEPS // taps))
    least = -(-channels // fitting)
    parts = [p for p in range(least, MOST_PARTS * least + 1) if channels % (p * unit) == 0]
    usual = channels // parts[0] if parts else channels
    return choose(f"{name}.depth", sorted({usual, channels}), usual)


def in_parts(
    shape: Shape, parts: int, element: Callable[..., PrimExpr], name: str
) -> tuple[Tensor | None, Tensor]:
    """Sums of so many parts, `element(*index, part)` each; -> what sums a part, if there are
    several, and all of them.
    """
    if parts == 1:
        return None, te.compute(shape, lambda *index: element(*index, 0), name=name)
    return partial_sums(shape, parts, element, name)


def partial_sums(
    shape: Shape, parts: int, element: Callable[..., PrimExpr], name: str
) -> tuple[Tensor, Tensor]:
    """What sums each of so many parts, and all of them in memory."""
    some = te.compute(
        (parts, *shape), lambda part, *index: element(*index, part), name=f"{name}_part"
    )
    if parts == 1:
        return some, te.compute(shape, lambda *index: some(0, *index), name=name)
    part = te.reduce_axis((0, parts), name="part")
    whole = te.compute(shape, lambda *index: te.sum(some(part, *index), axis=part), name=name)
    return some, whole
