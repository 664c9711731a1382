"""A form of convolution that the library lacks, in the lines that one takes: lanes are output
channels, a register tile is pixels of a row by a block of them, and a task is a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from selfbyoc.machine import Machine
from selfbyoc.schedules.kernels.conv import pack as direct
from selfbyoc.schedules.kernels.conv.form import Conv2d, Form
from selfbyoc.schedules.kernels.conv.lanes import Lanes, lanes_of
from selfbyoc.schedules.kernels.conv.layer import Layer
from selfbyoc.schedules.kernels.conv.padding import pad_rows
from selfbyoc.schedules.kernels.conv.window import UNROLLED, accumulate
from selfbyoc.schedules.steps.blocks import Facts
from selfbyoc.schedules.steps.candidates import decided
from selfbyoc.schedules.steps.faults import Faults, spilled
from selfbyoc.schedules.steps.images import Work
from selfbyoc.schedules.steps.parallel import parallel_over
from selfbyoc.schedules.steps.registers import out_of_registers, unroll_tile
from selfbyoc.schedules.steps.tensors import extents, reduce_axes, split_index
from selfbyoc.schedules.steps.tiles import BLOCK, RegisterTile, register_tiles
from selfbyoc.tvm import te
from selfbyoc.tvm.types import PrimExpr, Tensor


@dataclass(frozen=True)
class RowPlan:
    """Pixels of a row by one block of channels."""

    lanes: Lanes
    tile: RegisterTile
    vector: int

    def __str__(self) -> str:
        return f"rows, register tile {self.tile}"

    def faults(self, layer: Layer, cpu: Machine) -> Faults:
        """Of this plan for a layer."""
        yield from spilled(self.tile, cpu)
        yield from self.lanes.faults(layer, 1)


def planned(layer: Layer, cpu: Machine) -> RowPlan:
    """The best tile, unless a tuner decides for another."""
    vector = min(BLOCK, cpu.lanes("float32"))
    p = lanes_of(layer.image[2:], layer.out[2:], layer.window, layer.attrs)
    p = replace(p.of_rows(p.height, 1, 1), copies=not p.is_whole)
    tiles = register_tiles(cpu, range(1, p.width + 1), [BLOCK // vector])
    return RowPlan(p, decided(f"{layer.name}.tile", tiles, lambda tile: tile.size), vector)


def pack(weight: Tensor, plan: RowPlan, groups: int) -> Tensor:
    """[O, I, H, W] -> [O/16, I, H, W, 16]."""
    return direct.pack(weight, groups, whole=True)


@dataclass(frozen=True)
class RowStages:
    """The stages by role."""

    sums: Any
    result: Any
    copy: Any


def compute(conv: Conv2d, plan: RowPlan) -> RowStages:
    """The sums with channels last, and the result read out of them."""
    conv, p = conv.staged(), plan.lanes
    read, copy = conv.reader(p)
    blocks, channels, high, wide, lanes = extents(conv.weight)
    rc, ry, rx = axes = reduce_axes(rc=channels, ry=high, rx=wide)

    def element(n: PrimExpr, b: PrimExpr, y: PrimExpr, x: PrimExpr, lane: PrimExpr) -> PrimExpr:
        data = read(n, rc, y * p.pitch + x, ry, rx)
        return te.sum(conv.operands.times(data, conv.weight(b, rc, ry, rx, lane)), axis=axes)

    shape = (conv.out[0], blocks, p.height, p.width, lanes)
    sums = te.compute(shape, element, name=f"{conv.name}_sums")

    def pixel(n: PrimExpr, o: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        block, lane = split_index(o, lanes)
        return sums(n, block, y, x, lane)

    return RowStages(sums, te.compute(conv.out, pixel, name=conv.name), copy)


def schedule(work: Work, stages: RowStages, plan: RowPlan) -> None:
    """for row: for tile: acc = 0; for k: acc += ...; sums = acc."""
    sch, sums = work.sch, Facts(work.sch, stages.sums)
    written, added = out_of_registers(sch, sums.block, None)
    n, b, y, x, lane = sch.get_loops(written)
    xo, xi = sch.split(x, [None, plan.tile.rows])
    unroll_tile(sch, [n, b, y, xo], [xi, lane], plan.vector)
    sch.compute_at(added, xo, preserve_unit_loops=True)
    loops = list(sch.get_loops(added))[-len(sums.axes) :]
    tile = [loops[axis.position] for axis in sums.spatial[-2:]]
    work.finish.append(accumulate(sch, sums, tile, UNROLLED, plan.vector))
    parallel_over(sch, [n, b, y], sums.steps / plan.vector)
    if stages.copy is not None:
        pad_rows(work, Facts(sch, stages.copy), plan.lanes, plan.vector)
    work.done |= {sums.name, Facts(sch, written).name}


ROWS = Form(RowPlan, pack, compute, schedule)
