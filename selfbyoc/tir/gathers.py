"""Vectors whose lanes are fixed places of a row, as whole loads and shuffles.

    x[row + (0, 0, 1, 1, 2, 2, 3, 3)]   shuffle(x[row .. row + 4]; 0, 0, 1, 1, 2, 2, 3, 3)

The columns of a resized image lie so once their loop is unrolled. LLVM takes such elements one by
one, or gathers them. Only floats in their order: of groups of bytes LLVM makes dot products.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..machine import machine, machine_at_hand
from ..tvm import Analyzer, dtype_of, region_buffer, tir
from ..tvm.rewrite import with_nodes
from ..tvm.types import Buffer, PrimExpr, PrimFunc
from .lanes import lane, lanes_of

LEAST = 4  # lanes of what is looked at
MOST = 4  # elements that are loaded for each that is asked for


def with_gathers(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc with such loads as shuffles."""
    target = func.attrs.get("target") if func.attrs else None
    lanes = (machine_at_hand() if target is None else machine(target)).lanes("float32")
    return with_nodes(
        func, lambda load: _shuffled(load, lanes), lambda store: store, lambda block: block
    )


def _shuffled(load: PrimExpr, lanes: int) -> PrimExpr:
    index = load.indices[0]
    count = lanes_of(index) if len(load.indices) == 1 else 1
    if count < LEAST or isinstance(index, (tir.Ramp, tir.Broadcast)):
        return load
    first, apart = _places(index, count)
    if not apart or apart != sorted(apart) or not str(dtype_of(load)).startswith("float32"):
        return load
    parts = _cut(apart, lanes)
    if apart[0] == apart[-1]:  # the last column of a tail: attention's is 9% slower as a broadcast
        return load
    if any(max(part) - min(part) >= MOST * max(len(part), LEAST) for part in parts):
        return load
    made = [_part(region_buffer(load), first, part) for part in parts]
    if len(made) == 1:
        return made[0]
    return tir.Shuffle(made, [tir.const(n, "int32") for n in range(count)])


def _cut(apart: list[int], lanes: int) -> list[list[int]]:
    """In vectors of the machine; a last one of one element is part of the one before."""
    starts = [n for n in range(0, len(apart), lanes) if n == 0 or len(apart) - n > 1]
    return [apart[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]


def _places(index: PrimExpr, count: int) -> tuple[PrimExpr | None, list[int]]:
    """The first lane's index, and how far each lies from it; none if that is not known."""
    each = [lane(index, n) for n in range(count)]
    if any(e is None for e in each):
        return None, []
    ana = Analyzer()
    apart = [ana.simplify(e - each[0]) for e in each]
    if not all(isinstance(e, tir.IntImm) for e in apart):
        return None, []
    return ana.simplify(each[0]), [int(e) for e in apart]


def _part(buffer: Buffer, first: PrimExpr, apart: Sequence[int]) -> PrimExpr:
    """Neighbours that hold all of the elements, and these in their order."""
    least, extent = min(apart), max(apart) - min(apart) + 1
    order = [tir.const(n - least, "int32") for n in apart]
    if extent == 1:
        return tir.Broadcast(tir.BufferLoad(buffer, [first + least]), len(apart))
    row = tir.BufferLoad(buffer, [tir.Ramp(first + least, tir.const(1, dtype_of(first)), extent)])
    # 0.27's code generator wants as many lanes to take as it takes.
    return tir.Shuffle([row] * -(-len(apart) // extent), order)
