"""The plan of conv2d-relu-conv2d-relu: melted by blocks of rows, or stage by stage.

Melted, each block of the second convolution's rows computes the first one's rows that it needs, the
halo once more, and the intermediate is a block in L2. Stage by stage there are two more parallel
regions and nothing is computed twice; and a stage has what the melted form has not, panels of
pixels and sums by blocks of input channels. It melts where the intermediate is larger than twice
the cores' L2, though with an L3 a stage is faster even then. One core of Cascade Lake, direct, Nov
2026, AVX-512 (AVX2): 1x3x224x224 with 3->32->32 channels, an intermediate of 6.4 MB: melted 13.6 ms
(25.8), in stages 12.8 (18.6); 1x64x56x56 with 64->64->64, 0.8 MB: melted 6.5 ms (13.0), in stages
4.5 (7.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .....codegen.info.ops import Ops
from .....language.decisions import choose
from .....machine import Machine
from ....steps.candidates import decided
from ....steps.faults import Faults, outside, too_large
from ..lanes import Lanes
from ..layer import Layer
from ..pixels.plan import PixelPlan, usual_pixels
from ..plan import ConvPlans, plan, plan_winograd
from ..rounded import is_of_words
from ..tiles import time_of
from ..window import window_of

LEAVES = 2  # times the cores' L2 that an intermediate fills, for which melting pays


@dataclass(frozen=True)
class Melted:
    """The two plans of a melted pair: single rows of the first, blocks of rows of the second."""

    first: PixelPlan
    second: PixelPlan

    def __str__(self) -> str:
        rows = f"melted, {self.second.lanes.rows} rows a task"
        return f"{rows}, register tiles {self.first.tile} and {self.second.tile}"

    @property
    def rows(self) -> int:
        """Intermediate rows of a block, with the halo."""
        return self.second.lanes.rows + self.second.lanes.reach[0]

    @property
    def lanes(self) -> int:
        """Lanes of a block of the padded intermediate."""
        p = self.second.lanes
        last = p.tiles * p.lanes - 1 + p.reach[0] * p.pitch + p.reach[1]
        return max(self.rows, -(-(last + 1) // p.pitch)) * p.pitch

    def faults(self, ops: Ops, cpu: Machine) -> Faults:
        """Of both plans, and of the intermediate of a block."""
        layers = _layers(ops)
        for layer, each in zip(layers, (self.first, self.second), strict=True):
            found = each.faults(layer, cpu, in_l1=False)
            yield from (f"{layer.name}: {text}" for text in found)
        yield from outside("rows of the first", self.first.lanes.rows, 1, 1)
        if self.second.lanes.rows > 1:
            hidden = 4 * layers[0].out[1] * self.lanes
            yield from too_large("the intermediate", hidden, cpu.l2_bytes // 2)


ChainPlan = Melted | ConvPlans


def plan_chain(ops: Ops, machine: Machine) -> ChainPlan:
    """Melted where it pays, and where no convolution saves more by Winograd."""
    convs = ops.of("conv2d")
    by_winograd = any([plan_winograd(ops, conv, machine) is not None for conv in convs])
    return melted(ops, machine) if not by_winograd and melts(ops, machine) else plan(ops, machine)


def melts(ops: Ops, cpu: Machine) -> bool:
    """Whether to melt: it can where the intermediate's rows are read whole and have several tiles
    and no weight is of words, and pays where it leaves the caches between two parallel regions.
    """
    first, second = ops.conv2d, ops.conv2d_1
    hidden = first.outputs[0][0]
    plain = tuple(second.attrs["strides"]) == (1, 1)
    plain = plain and first.attrs["groups"] == second.attrs["groups"] == 1
    words = any(is_of_words(ops, conv, cpu) for conv in (first, second))
    can = plain and not words and all(_of_tiles(layer, cpu) for layer in _layers(ops))
    pays = can and 4 * math.prod(hidden) > LEAVES * cpu.l2_bytes * cpu.cores
    return choose("melted", (True, False) if can else (False,), pays)


def _layers(ops: Ops) -> list[Layer]:
    """Both convolutions, in the blocks that their weights came packed in."""
    convs = ops.conv2d, ops.conv2d_1
    return [Layer.of(conv, packed=ops.packing(conv, 1).shape) for conv in convs]


def _of_tiles(layer: Layer, cpu: Machine) -> list[PixelPlan]:
    """Plans whose rows have several tiles, the best first: a row of one tile would be cut down to
    the lanes in use, which 0.17 cannot decompose.
    """
    found = usual_pixels(layer, cpu)
    return [p for p in found if p.tile.vectors * p.vector < layer.out[3]]


def melted(ops: Ops, cpu: Machine) -> Melted:
    """Single rows, and as many rows in a block as cost the fewest steps and fit in the cache."""
    layers = _layers(ops)
    usual = [_of_tiles(layer, cpu)[0] for layer in layers]
    first, second = (
        replace(p, window=window_of(layer, p.tile)) for layer, p in zip(layers, usual, strict=True)
    )
    whole = Melted(_rows_of(first, 1), second)
    steps = [layer.steps * layer.out[1] for layer in layers]

    def cost(rows: int) -> float:
        m = Melted(whole.first, _rows_of(second, rows))
        return _busiest(m, layers[1].out[0], cpu) * (
            m.rows * _time(m.first, cpu) * steps[0] + _time(m.second, cpu) * steps[1]
        )

    def fits(rows: int) -> bool:
        lanes = Melted(whole.first, _rows_of(second, rows)).lanes
        return layers[0].out[1] * lanes * 4 <= cpu.l2_bytes // 2

    sizes = [r for r in range(1, layers[1].out[2] + 1) if r == 1 or fits(r)]
    sizes.sort(key=cost)
    rows = decided("rows_of_a_block", sizes)
    return Melted(whole.first, _rows_of(second, rows))


def _busiest(m: Melted, images: int, cpu: Machine) -> int:
    """Blocks of rows that the core with most of them computes."""
    return -(-images * m.second.lanes.chunks // cpu.cores)


def _time(p: PixelPlan, cpu: Machine) -> float:
    """Of the tiles of a task, for each output channel, input channel and tap."""
    return p.lanes.tiles * p.lanes.lanes * time_of(p.tile, cpu) / p.tile.sums


def _rows_of(p: PixelPlan, rows: int) -> PixelPlan:
    lanes: Lanes = p.lanes.of_rows(rows, p.tile.vectors * p.vector, p.vector)
    return replace(p, lanes=replace(lanes, copies=True))
