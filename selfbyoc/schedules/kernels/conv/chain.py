"""conv2d-relu-conv2d-relu melted by blocks of rows, or stage by stage: computes and schedule.

Melted, each block of the second convolution's rows computes the first one's rows that it needs, the
halo once more, and the intermediate is a block in L2. Stage by stage there are two more parallel
regions and nothing is computed twice. It melts where the intermediate is larger than the caches.
One core of Zen 5, LLVM 22 (LLVM 10), Nov 2026: 1x3x224x224 with 3->32->32 channels, an intermediate
of 6.4 MB: melted 3.9 ms (4.3), in stages 4.3 (4.8), its multiplications alone 3.6; 1x64x56x56, 0.8
MB: melted 1.9 ms (2.0), in stages 1.8 (1.9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...._tvm import te, tir
from ....language.decisions import choose
from ....machine import machine
from ...steps.blocks import facts
from ...steps.candidates import best
from . import direct_schedule
from .direct import extents, product
from .direct_tiles import Work, pad_rows, tile, tile_under
from .float_conv import convolution, is_winograd
from .lanes import LANES, Plan, plan, reader

CACHES = (
    2 << 20
)  # bytes of two cores' L2: an intermediate below stays there between two parallel regions
BLOCK = 512 << 10  # bytes of a block of the intermediate: half of one core's L2

Tensor = Any


@dataclass(frozen=True)
class Melt:
    """The two plans of a melted pair: single rows of the first, blocks of rows of the second."""

    first: Plan
    second: Plan

    @property
    def rows(self) -> int:
        """Intermediate rows of a block, with the halo."""
        return self.second.rows + self.second.reach[0]

    @property
    def lanes(self) -> int:
        """Lanes of a block of the padded intermediate."""
        p = self.second
        last = p.tiles * p.lanes - 1 + p.reach[0] * p.pitch + p.reach[1]
        return max(self.rows, -(-(last + 1) // p.pitch)) * p.pitch


def melt(
    image: Sequence[int], hidden: Sequence[int], out: Sequence[int], windows: Any, attrs: Any
) -> Melt:
    """Single rows, and as many rows in a block as cost the fewest steps and fit in the cache."""
    first = _rows_of(plan(image[2:], hidden[2:], windows[0], attrs[0], 1), 1)
    second = plan(hidden[2:], out[2:], windows[1], attrs[1], 1)
    work = [
        math.prod(windows[0]) * image[1] * hidden[1],
        math.prod(windows[1]) * hidden[1] * out[1],
    ]

    def cost(rows: int) -> float:
        m = Melt(first, _rows_of(second, rows))
        chunks = m.second.chunks + m.second.chunks % 2  # two threads, or four with blocks enough
        return chunks * (
            m.rows * first.tiles * first.lanes * work[0] + m.second.tiles * LANES * work[1]
        )

    def fits(rows: int) -> bool:
        return hidden[1] * Melt(first, _rows_of(second, rows)).lanes * 4 <= BLOCK

    sizes = [r for r in range(1, out[2] + 1) if r == 1 or fits(r)]
    usual = min(sizes, key=cost)
    rows = choose("rows_of_a_block", best(sorted(sizes, key=cost), usual), usual)
    return Melt(first, _rows_of(second, rows))


def _rows_of(p: Plan, rows: int) -> Plan:
    used = (rows - 1) * p.pitch + p.width
    lanes = min(LANES, -(-used // 16) * 16)
    return replace(p, rows=rows, lanes=lanes, tiles=-(-used // lanes), copies=True)


def melts(ops: Any) -> bool:
    """Whether to melt: it can where the intermediate's rows are read whole and have several tiles,
    and pays where it leaves the caches.
    """
    first, second = ops.conv2d, ops.conv2d_1
    hidden, out = first.outputs[0][0], second.outputs[0][0]
    plain = tuple(second.attrs["strides"]) == (1, 1)
    plain = plain and first.attrs["groups"] == second.attrs["groups"] == 1
    # A row of one tile would be cut down to the lanes in use, which 0.17 cannot decompose.
    can = plain and min(hidden[3], out[3]) > LANES
    pays = can and 4 * math.prod(hidden) > CACHES
    return choose("melted", (True, False) if can else (False,), pays)


def compute(
    x: Tensor, w1: Tensor, w2: Tensor, ops: Any, b1: Tensor = None, b2: Tensor = None
) -> Tensor:
    """The whole composite: melted where it pays."""
    pairs = ((w1, ops.conv2d), (w2, ops.conv2d_1))
    # A Winograd convolution saves more than melting does.
    direct = not any(is_winograd(weight, conv.inputs[1][0]) for weight, conv in pairs)
    return (melted if direct and melts(ops) else staged)(x, w1, w2, ops, b1, b2)


def _relu(value: Any, bias: Tensor | None, channel: Any) -> Any:
    value = value if bias is None else value + bias(channel)
    return tir.Max(value, tir.const(0, "float32"))


def staged(
    x: Tensor, w1: Tensor, w2: Tensor, ops: Any, b1: Tensor = None, b2: Tensor = None
) -> Tensor:
    """One convolution behind the other."""
    for conv, weight, bias, name in (
        (ops.conv2d, w1, b1, "relu"),
        (ops.conv2d_1, w2, b2, "relu_1"),
    ):
        x = _stage(convolution(x, weight, conv), bias, name)
    return x


def _stage(y: Tensor, bias: Tensor | None, name: str) -> Tensor:
    return te.compute(y.shape, lambda n, c, h, w: _relu(y(n, c, h, w), bias, c), name=name)


def plans_of(ops: Any) -> Melt:
    """The plans of the pair at hand."""
    one, two = ops.conv2d, ops.conv2d_1
    windows = [conv.inputs[1][0][2:] for conv in (one, two)]
    return melt(
        one.inputs[0][0], one.outputs[0][0], two.outputs[0][0], windows, [one.attrs, two.attrs]
    )


def melted(
    x: Tensor, w1: Tensor, w2: Tensor, ops: Any, b1: Tensor = None, b2: Tensor = None
) -> Tensor:
    """Both convolutions by blocks of the second one's rows; the block's number is an axis."""
    m, zero = plans_of(ops), tir.const(0, "float32")
    rows1 = extents(w1)[-1]
    batch = ops.conv2d_1.outputs[0][0][0]
    hidden, (top, left) = ops.conv2d.outputs[0][0], ops.conv2d_1.attrs["padding"][:2]
    term = product(reader(x, m.first, ops.conv2d.attrs, zero, "conv2d"), w1, 1, hidden[1])

    def row_of(chunk: Any, q: Any) -> Any:
        return chunk * m.second.rows + q - top

    def tile(n: Any, chunk: Any, q: Any, b: Any, r: Any, t: Any, lane: Any) -> Any:
        # Rows outside of the intermediate repeat its border; what is computed there is not read.
        row = tir.Max(tir.Min(row_of(chunk, q), hidden[2] - 1), 0)
        return term(n, b, r, row * m.first.pitch + t * m.first.lanes + lane)

    shape = (batch, m.second.chunks, m.rows, int(w1.shape[0]), rows1, m.first.tiles, m.first.lanes)
    tiles = te.compute(shape, tile, name="conv2d_tiles")

    def between(n: Any, chunk: Any, c: Any, lane: Any) -> Any:
        q, column = tir.floordiv(lane, m.second.pitch), tir.floormod(lane, m.second.pitch) - left
        row = row_of(chunk, q)
        inside = tir.all(row >= 0, row < hidden[2], column >= 0, column < hidden[3], q < m.rows)
        at = (tir.floordiv(column, m.first.lanes), tir.floormod(column, m.first.lanes))
        value = tiles(n, chunk, q, tir.floordiv(c, rows1), tir.floormod(c, rows1), *at)
        return tir.if_then_else(inside, _relu(value, b1, c), zero)

    block = te.compute((batch, m.second.chunks, hidden[1], m.lanes), between, name="conv2d_1_pad")
    return _second(block, w2, m.second, ops.conv2d_1, b2)


def _second(block: Tensor, w2: Tensor, p: Plan, conv: Any, bias: Tensor | None) -> Tensor:
    """The second convolution on blocks of its input, and its relu."""
    batch, channels, height, width = conv.outputs[0][0]
    rows, dilation = extents(w2)[-1], conv.attrs["dilation"]

    def read(n: Any, c: Any, at: Any, y: Any, z: Any) -> Any:
        chunk, lane = at
        return block(n, chunk, c, lane + y * (dilation[0] * p.pitch) + z * dilation[1])

    term = product(read, w2, 1, channels)
    tiles = te.compute(
        (batch, p.chunks, int(w2.shape[0]), rows, p.tiles, p.lanes),
        lambda n, chunk, b, r, t, lane: term(n, b, r, (chunk, t * p.lanes + lane)),
        name="conv2d_1_tiles",
    )

    def element(n: Any, o: Any, y: Any, z: Any) -> Any:
        lane = tir.floormod(y, p.rows) * p.pitch + z
        where = (tir.floordiv(y, p.rows), tir.floordiv(o, rows), tir.floormod(o, rows))
        value = tiles(n, *where, tir.floordiv(lane, p.lanes), tir.floormod(lane, p.lanes))
        return _relu(value, bias, o)

    return te.compute((batch, channels, height, width), element, name="relu_1")


def schedule(sch: Any, ops: Any, target: Any) -> None:
    """Melted, if the compute is; else stage by stage."""
    blocks = {b.name: b for b in facts(sch)}
    if "conv2d_1_pad" not in blocks or "relu" in blocks or "conv2d_1" in blocks:
        direct_schedule.schedule(sch, ops, target)
        return
    m, work = plans_of(ops), Work(sch, machine(target))
    # 1. A task is a block of rows of the result; its channels follow one another, with the weights
    # in L1.
    outer = tile(work, blocks["conv2d_1_tiles"], m.second, parallel=False)
    task = sch.fuse(*outer[:2])
    # 2. What the block reads is padded row by row, and each row's tiles are computed just before.
    between = blocks["conv2d_1_pad"].block
    sch.compute_at(between, task, preserve_unit_loops=True)
    *_, channel, lane = sch.get_loops(between)
    rows = blocks["conv2d_tiles"].shape[-3]
    row, column = sch.split(lane, [None, m.second.pitch])
    b, r = sch.split(channel, [None, rows])
    sch.reorder(row, b, r, column)
    tile_under(work, blocks["conv2d_tiles"], m.first, b)
    sch.parallel(task)
    if "conv2d_pad" in blocks:
        pad_rows(work, blocks["conv2d_pad"], m.first)
    for last in work.finish:
        last()
