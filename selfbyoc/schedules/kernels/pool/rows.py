"""Pools row by row, without a padded copy: the rows of a window into one, then along that one.

A window of k rows and columns costs 2 k operations an element instead of k * k, the rows are read
where they lie, and what is between stays in L1. Under a horizontal stride all positions are
computed and some are taken: that is one access with a stride for each result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ...._tvm import te, tir
from ....language.decisions import choose
from ....machine import Machine, machine
from ...steps.blocks import Facts, divisor, facts
from ...steps.loops import parallel_over, vectorize

MOST_TAPS = 8  # terms are written one by one; a larger window is a reduction
LEAST_WIDTH = 32  # narrower images without a stride are faster as flat lanes (lanes.py)
DOWN, ALONG = "_down", "_along"  # how the names of the stages end
CHUNK = 16  # columns are computed in whole vectors of float32 where the image has them

Tensor = Any
Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Window:
    """One axis of a pool."""

    extent: int  # of the image
    out: int
    size: int
    stride: int
    dilation: int
    before: int  # padding

    @property
    def reach(self) -> int:
        """From the first to the last tap."""
        return (self.size - 1) * self.dilation

    @property
    def used(self) -> int:
        """Places, padding included, that some window reads."""
        return (self.out - 1) * self.stride + self.reach + 1

    @property
    def is_padded(self) -> bool:
        """Whether a window reads outside the image."""
        return self.before > 0 or self.used > self.extent

    @property
    def columns(self) -> int:
        """Places that are computed: whole vectors, if the image has as many."""
        whole = -(-self.used // CHUNK) * CHUNK
        return self.used if self.is_padded or whole > self.extent else whole

    def read(self, at: Any, value: Callable[[Any], Any], fill: Any) -> Any:
        """`value` at a place that counts from the padding, or `fill` outside; for whole vectors."""
        if not self.is_padded:
            return value(at)
        at = at - self.before
        near = tir.Min(tir.Max(at, 0), self.extent - 1)
        return tir.Select(tir.all(at >= 0, at < self.extent), value(near), fill)


def windows(image: Sequence[Any], call: Any) -> tuple[Window, Window]:
    """The vertical and the horizontal window of an NCHW pool."""
    a, out = call.attrs, getattr(call.outputs[0], "shape", call.outputs[0])

    def of(n: int) -> Window:
        size, stride = a["pool_size"][n], a["strides"][n]
        dilation = tuple(a.get("dilation", (1, 1)))[n]
        return Window(int(image[2 + n]), out[2 + n], size, stride, dilation, a["padding"][n])

    return of(0), of(1)


def chosen(down: Window, along: Window, name: str) -> bool:
    """Whether rows are the form for such a window, of the op `name`."""
    fits = down.size <= MOST_TAPS and along.size <= MOST_TAPS and along.out > 1
    usual = fits and (along.stride > 1 or along.extent >= LEAST_WIDTH)
    return choose(f"{name}.by_rows", (True, False) if fits else (False,), usual)


def window(x: Tensor, call: Any, combine: Combine, fill: Any, name: str) -> Any:
    """-> the element at (n, c, y, x): `combine` over its window; `fill` is outside the image."""
    down, along = windows(x.shape, call)
    outer = tuple(call.outputs[0].shape[:3])

    def vertical(n: Any, c: Any, y: Any, at: Any) -> Any:
        def row(k: int) -> Any:
            place = y * down.stride + k * down.dilation
            return down.read(place, lambda r: x(n, c, r, at - along.before), fill)

        value = reduce(combine, map(row, range(down.size)))
        if not along.is_padded:
            return value
        inside = tir.all(at >= along.before, at < along.before + along.extent)
        return tir.if_then_else(inside, value, fill)

    rows = te.compute((*outer, along.columns), vertical, name=f"{name}{DOWN}")

    def horizontal(n: Any, c: Any, y: Any, at: Any) -> Any:
        taps = (rows(n, c, y, at + k * along.dilation) for k in range(along.size))
        return reduce(combine, taps)

    if along.stride == 1:
        return horizontal
    every = te.compute((*outer, along.columns - along.reach), horizontal, name=f"{name}{ALONG}")
    return lambda n, c, y, at: every(n, c, y, at * along.stride)


def is_made_of_rows(sch: Any) -> bool:
    """Whether a stacked pool was computed by `window`."""
    return any(block.name.endswith(DOWN) for block in facts(sch))


def schedule(sch: Any, ops: Any, target: Any) -> None:
    """for image, in parallel: for row: down; along; out."""
    cpu, blocks = machine(target), facts(sch)
    (down,) = [b for b in blocks if b.name.endswith(DOWN)]
    (last,) = [b for b in blocks if b.is_output]
    every = [b for b in blocks if b.name.endswith(ALONG)]
    view = next(iter(ops))
    _, along = windows(view.inputs[0][0], view)
    *outer, y, _ = sch.get_loops(last.block)
    for block in [*every, down]:
        sch.compute_at(block.block, y, preserve_unit_loops=True)
    # What tests for a border, and what is read with a stride, LLVM's vectoriser does better.
    whole = [b for b, plain in ((down, not along.is_padded), (last, not every)) if plain]
    for block in [*whole, *every]:
        _columns(sch, block, cpu)
    images = last.shape[0] * last.shape[1]
    parallel_over(sch, outer if images >= 4 * cpu.cores else [*outer, y], down.size)


def _columns(sch: Any, block: Facts, cpu: Machine) -> None:
    """The last loop in vectors: whole ones, or a row of any length that LLVM cuts into whole ones
    and a rest.
    """
    lanes = cpu.lanes(block.dtype)
    loop = list(sch.get_loops(block.block))[-1]
    extent = int(sch.get(loop).extent)
    width = extent if extent <= 4 * lanes else divisor(extent, 4 * lanes)
    if extent % lanes == 0:
        width = lanes * divisor(extent // lanes, 4)
    if width * 2 >= lanes:
        vectorize(sch, sch.split(loop, [None, width])[1], lanes)
