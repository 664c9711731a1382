"""Copies that turn a tensor over: what is read lies together along another axis than the result.

Pixels become tokens, tokens an image, heads change places with rows. Vectors of the result are read
with a stride then, element by element, and what lies beside them is read again for the next row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...language.decisions import is_symbolic
from ...machine import Machine
from ...tir.transposed_tiles import made_of
from ...tvm import Analyzer, dtype_of, region_buffer, tir, tvm
from ...tvm.rewrite import substitute
from ...tvm.types import Loop, Schedule, TirNode
from .blocks import Facts
from .indices import Axis
from .loops import transpose

LEAST = 4  # iterations of both loops: of fewer a square saves nothing
WIDE = ("float32", "int32", "uint32")  # vectors of bytes are wider than a square is


@dataclass(frozen=True)
class _Group:
    """Neighbouring axes that are one in the result and in what is read: the first of them, how many
    they are, their elements, and how far apart these lie.
    """

    first: int
    count: int
    extent: int
    read: int
    written: int


def turned_loops(
    sch: Schedule, block: Facts, loops: Sequence[Loop], machine: Machine
) -> list[Loop] | None:
    """The block in squares that are transposed in registers; the loops around them, outermost
    first. None where it is no such copy, or no square fits: nothing is changed then.

    Squares follow one another along the result's rows, so that it is written in order.
    """
    groups = _groups(block) if len(loops) == len(block.axes) else []
    beside = next((g for g in groups[:-1] if g.read == 1), None)
    if beside is None or min(beside.extent, groups[-1].extent) < LEAST:
        return None
    lanes = machine.lanes(block.dtype)
    sides = [(beside, groups[-1]), (groups[-1], beside)]
    down, across = max(sides, key=lambda each: _height(each[0], lanes) >= LEAST)
    height = _height(down, lanes)
    if height < LEAST:
        return None
    fused = {g.first: fuse(sch, loops[g.first : g.first + g.count]) for g in groups}
    rest = [loop for first, loop in fused.items() if first not in (down.first, across.first)]
    outer, inner = sch.split(fused[down.first], [None, height])
    sch.reorder(*rest, outer, fused[across.first], inner)
    transpose(sch, inner, fused[across.first], lanes)
    return [*rest, outer]


def fuse(sch: Schedule, loops: Sequence[Loop]) -> Loop:
    """Loops as one; one as it is."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def _height(group: _Group, lanes: int) -> int:
    """The largest power of two that divides an axis, at most a vector."""
    return math.gcd(group.extent, lanes)


def _groups(block: Facts) -> list[_Group]:
    """The axes of a copy of one tensor, those that are one together; none of anything else."""
    store: Any = block.stmt.body
    if type(store).__name__ != "BufferStore" or block.dtype not in WIDE:
        return []
    if any(axis.reduces or is_symbolic(axis.extent) for axis in block.axes):
        return []
    load, _ = made_of(store.value, [axis.var for axis in block.axes])
    if load is None or dtype_of(load) not in WIDE:
        return []
    read, written = (_strides(node, block.axes) for node in (load, store))
    if read is None or written is None or written[-1] != 1:
        return []
    groups = list[_Group]()
    for n, axis in enumerate(block.axes):
        own = axis.extent, read[n], written[n]
        last = groups[-1] if groups else None
        if last and (last.read, last.written) == (axis.extent * read[n], axis.extent * written[n]):
            own = last.extent * axis.extent, read[n], written[n]
            groups[-1] = _Group(last.first, last.count + 1, *own)
        else:
            groups.append(_Group(n, 1, *own))
    return groups


def _strides(node: TirNode, axes: Sequence[Axis]) -> list[int] | None:
    """How far apart the elements lie that follow one another along each axis; None where that is
    no number.
    """
    within = Analyzer()
    for axis in axes:
        within.bind(axis.var, tvm.ir.Range(0, axis.extent))
    offset: Any = tir.const(0)
    for index, extent in zip(node.indices, region_buffer(node).shape, strict=True):
        offset = offset * extent + index
    offset = within.simplify(offset)  # a reshape divides by what no axis goes beyond
    simplify = Analyzer().simplify
    steps = [simplify(substitute(offset, {a.var: a.var + 1}) - offset) for a in axes]
    found: list[Any] = [getattr(step, "value", None) for step in steps]
    return None if None in found else [int(n) for n in found]
