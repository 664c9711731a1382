"""Rows of bytes that a loop copies, as vectors: of 57 bytes two of 32, of which the last one starts
earlier.

    for x in 57: copy[at + x] = if inside then image[from + x] else level

LLVM unrolls such a loop before it looks for vectors, and moves byte after byte: of a 3x3 over
144x56x56 these copies took 37% of the time, and take 6% (Zen 3, Nov 2026). What is cast and moved
on the way may be (transposed_tiles.py); what is written twice is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..tvm import dtype_of, region_buffer, tir
from ..tvm.rewrite import is_conditional, map_loops, sequence, substitute
from ..tvm.types import PrimExpr, PrimFunc, Stmt
from .lanes import depends
from .transposed_tiles import is_contiguous, made_of

BYTES = ("int8", "uint8")
_WIDTHS = (32, 16, 8, 4)  # bytes of a vector


def with_copied_rows(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc whose copies are so."""
    return map_loops(func, _in_vectors)


def _in_vectors(loop: Stmt) -> Stmt:
    store: Any = loop.body
    is_serial = loop.kind == tir.ForKind.SERIAL and isinstance(loop.extent, tir.IntImm)
    if not is_serial or type(store).__name__ != "BufferStore" or len(store.indices) != 1:
        return loop
    if dtype_of(store.value) not in BYTES or int(loop.extent) < _WIDTHS[-1]:
        return loop
    value, choice = store.value, None
    if is_conditional(value) and not depends(value.args[0], [loop.loop_var]):
        value, choice = value.args[1], (value.args[0], value.args[2])
    load, made = made_of(value, [loop.loop_var])
    if load is None or not _moves(load, store, loop):
        return loop

    def moved(at: int, lanes: int) -> PrimExpr:
        return made(_loaded(loop, load, at, lanes), lanes)

    copied = sequence(_stores(loop, store, moved))
    if choice is None:
        return copied
    condition, other = choice
    if depends(other, [loop.loop_var]):
        return loop
    filled = sequence(_stores(loop, store, lambda _, lanes: tir.Broadcast(other, lanes)))
    return tir.IfThenElse(condition, copied, filled)


def _moves(load: Any, store: Any, loop: Stmt) -> bool:
    """Whether neighbours of one buffer become neighbours of another."""
    apart = len(load.indices) == 1 and not region_buffer(load).same_as(store.buffer)
    return apart and is_contiguous(load, loop) and is_contiguous(store, loop)


def _stores(loop: Stmt, store: Any, value: Callable[[int, int], PrimExpr]) -> Iterator[Stmt]:
    extent = int(loop.extent)
    lanes = next(width for width in _WIDTHS if width <= extent)
    for at in [*range(0, extent - lanes, lanes), extent - lanes]:
        yield tir.BufferStore(store.buffer, value(at, lanes), [_ramp(loop, store, at, lanes)])


def _loaded(loop: Stmt, load: Any, at: int, lanes: int) -> PrimExpr:
    return tir.BufferLoad(region_buffer(load), [_ramp(loop, load, at, lanes)])


def _ramp(loop: Stmt, node: Any, at: int, lanes: int) -> PrimExpr:
    first = substitute(node.indices[0], {loop.loop_var: loop.min + at})
    return tir.Ramp(first, tir.const(1, dtype_of(first)), lanes)
