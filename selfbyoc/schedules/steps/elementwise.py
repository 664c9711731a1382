"""An elementwise or copying block on a CPU: its last axes flat, in vectors, under parallel rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from ...language.decisions import is_symbolic
from ...machine import Machine
from ...tir.concatenates import LOADS, branches
from ...tvm import TensorLoad, dtype_of, region_buffer, tir, walk
from ...tvm.rewrite import mapped
from ...tvm.types import Loop, PrimExpr, Schedule, TirNode
from .blocks import Facts
from .indices import Axis, is_axis
from .loops import PARTITION, vectorize
from .parallel import LEAST_STEPS, is_worth_it
from .turned import fuse, turned_loops

MOST_PIECES = 3.2  # times the registers that whole vectors would take
# Sources of a row that are copied apart: 128 x (4096, 7500, 4096) in 190 us, with a test for each
# element 610; 128 x (16, 7500, 16) in 56 and 280 (two cores of Zen 4, Nov 2026).
MOST_SOURCES = 8


def vectorize_injective(sch: Schedule, block: Facts, machine: Machine) -> None:
    """Outer loops in parallel, the last axes as one loop, in vectors.

    Axes along which everything that is read lies as the result does are one row: 7 x 7 pixels are
    49, in vectors of 16, 16, 16 and 1, where rows of 7 would take three each. A row that no width
    fills stays a loop, without a test in it: LLVM makes vectors and a tail of it. Between bytes and
    wider elements vectors are whole: of others LLVM converts each element by itself. Where a row is
    joined of several, as by a concatenate or a pad, each is copied by a loop of its own. A copy
    that reads across its rows goes in squares (turned.py).
    """
    loops = list(sch.get_loops(block.block))
    if not loops or block.size < 2:
        return
    turned = turned_loops(sch, block, loops, machine)
    if turned is not None:
        parallel_outer(sch, turned, block.size, machine)
        return
    axes = block.spatial if len(loops) == len(block.spatial) else block.spatial[-1:]
    together = flat_axes(block, axes)
    *before, row = [*loops[: len(loops) - together], fuse(sch, loops[-together:])]
    extent = math.prod(axis.extent for axis in axes[-together:])
    lanes = widest_lanes(block, machine)
    width = width_of(extent, lanes)
    if converts_bytes(block) and not is_symbolic(extent) and extent > lanes:
        width = lanes
    if not is_symbolic(extent) and _is_joined(block, axes[-1]):
        sch.annotate(row, PARTITION, 1)
        before = before or [row]
    elif width:
        row, inner = sch.split(row, [None, width])
        vectorize(sch, inner, lanes)
        before.append(row)
    elif not before:
        before.append(row)
    parallel_outer(sch, before, block.size, machine)


def widest_lanes(block: Facts, machine: Machine) -> int:
    """Lanes of the largest elements that a block reads or writes."""
    regions = [*block.stmt.reads, *block.stmt.writes]
    return min(machine.lanes(str(region_buffer(region).dtype)) for region in regions)


def converts_bytes(block: Facts) -> bool:
    """Whether a block makes bytes of wider elements, or these of bytes."""
    regions = [*block.stmt.reads, *block.stmt.writes]
    dtypes = {str(region_buffer(region).dtype) for region in regions}
    return bool(dtypes & {"int8", "uint8"}) and bool(dtypes - {"int8", "uint8"})


def registers_of(width: int, lanes: int) -> int:
    """Loads of a vector of any width: LLVM makes powers of two of it, 28 floats are 16 + 8 + 4."""
    return width // lanes + (width % lanes).bit_count()


def width_of(extent: int, lanes: int) -> int:
    """The divisor of a row's extent that takes fewest registers an element, up to four vectors; 0
    if none is worth a vector.
    """

    def pieces(width: int) -> float:
        return registers_of(width, lanes) * lanes / width

    if is_symbolic(extent):
        return 0
    found = [d for d in range(2, min(extent, 4 * lanes) + 1) if extent % d == 0]
    best = min(found, key=lambda d: (pieces(d), -d), default=0)
    return best if best and (best == extent or pieces(best) <= MOST_PIECES) else 0


def flat_axes(block: Facts, axes: Sequence[Axis]) -> int:
    """How many of the last axes can be one, 1 at least: what is read has all of them, last and
    whole, or none, and nothing but indices asks for them.
    """
    apart = _asked_for(block)
    count = 1
    for n in range(2, len(axes) + 1):
        inner = [axis for axis in axes[-n:] if axis.extent > 1]
        if any(is_symbolic(axis.extent) for axis in inner):
            break
        if any(any(axis.var.same_as(v) for v in apart) for axis in inner):
            break
        regions = [*block.stmt.reads, *block.stmt.writes]
        if not all(_is_flat(region, inner, block.axes) for region in regions):
            break
        count = n
    return count


def _asked_for(block: Facts) -> list[PrimExpr]:
    """The axes that the expression asks for outside of indices: coordinates, conditions."""

    def number(load: PrimExpr) -> PrimExpr:
        return tir.const(0, dtype_of(load))

    values: list[Any] = []
    plain = mapped(block.stmt.body, TensorLoad.__name__, number)
    walk(plain, lambda store: values.append(store.value), "BufferStore")
    return _variables(values, [axis.var for axis in block.axes])


def _is_joined(block: Facts, axis: Axis) -> bool:
    """Whether each row along an axis is copied from a few sources, one after the other."""
    store = block.stmt.body
    kinds = (*LOADS, "FloatImm", "IntImm")  # numbers fill what is padded
    sources = branches(store.value, kinds) if type(store).__name__ == "BufferStore" else []
    return 1 < len(sources) <= MOST_SOURCES and any(axis.var.same_as(v) for v in _asked_for(block))


def _variables(nodes: Sequence[PrimExpr], own: Collection[PrimExpr]) -> list[PrimExpr]:
    found: list[Any] = []
    for node in nodes:
        walk(node, lambda n: found.extend(v for v in own if n.same_as(v)), "Var")
    return found


def _is_flat(region: TirNode, inner: Sequence[Axis], axes: Sequence[Axis]) -> bool:
    """Whether a region has all of these axes, as its last dimensions and whole, or none."""
    shape = [_number(e) for e in region_buffer(region).shape]
    dims = [(r, e) for r, e in zip(region.region, shape, strict=True) if e != 1]
    used = [n for n, (r, _) in enumerate(dims) if _variables([r.min], [a.var for a in inner])]
    if not used:
        return True
    last = range(len(dims) - len(inner), len(dims))
    return used == list(last) and all(
        _number(r.extent) == 1 and extent == axis.extent and is_axis(r.min, axis, axes)
        for (r, extent), axis in zip(dims[-len(inner) :], inner, strict=True)
    )


def _number(extent: PrimExpr) -> int | None:
    """An extent that is one; that of a window cut at the border is an expression."""
    return int(extent) if isinstance(extent, (int, tir.IntImm)) else None


def parallel_outer(sch: Schedule, loops: Sequence[Loop], steps: float, machine: Machine) -> None:
    """Run the outermost loops in parallel, as few as make even tasks: what depends on them alone
    is computed once, outside of the others. Little work stays on one core.
    """
    if not is_worth_it(steps, LEAST_STEPS) or not loops:
        return
    count, tasks = 0, 1
    for count, loop in enumerate(loops, 1):  # noqa: B007 (the last one that is needed)
        tasks *= int(sch.get(loop).extent)
        many = is_symbolic(int(sch.get(loop).extent))
        if many or (tasks >= machine.cores and machine.is_even(tasks)):
            break
    sch.parallel(fuse(sch, loops[:count]))
