"""Transposes in registers: rows of a tile are read as vectors, shuffled, and stored as its columns.

TVM vectorises one side of a copy that transposes; the other side goes element by element, some 2
cycles each. A schedule says which loops copy (`transpose` in schedules/steps/loops.py), and this
changes them once they are lowered:

    for tile, i, j: if tile * J + j < elements: a[.., i, tile * J + j] = b[.., tile * J + j, i]

or the other way, with what is contiguous in j read. On the way an element may be cast, shifted and
scaled, as a level that becomes a float. The last tile is moved back where it would hang over, and
copies some elements again; the tiles begin with the first element for which the condition holds, as
TVM 0.17 copies from before a padded image on. What is read may be selected, whole tiles at a time:
else they are filled with a number. Where the last element is read again after it (an index is the
least of two), a tile that reaches it stays as its loops have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tvm import Analyzer, dtype_of, region_buffer, tir
from ..tvm.rewrite import (
    OPERATORS,
    is_conditional,
    map_loops,
    sequence,
    substitute,
    with_body,
)
from ..tvm.types import PrimExpr, PrimFunc, PrimVar, Stmt, TirNode
from ..tvm.values import Unknown, evaluated
from ..tvm.vectors import with_vectors
from .lanes import depends, read_once

TRANSPOSE = "tefuse.transpose"  # an annotation of the loop over tiles: their elements in all
Name = Callable[[Any, int], Any]
Made = Callable[[Any, int], Any]
# Between which vectors are cast everywhere: no bool for 0.27, no float16 for LLVM 10.
CAST = {"int8", "uint8", "int32", "float32"}


def with_copies(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc whose annotated loops transpose in registers."""

    def changed(loop: Stmt) -> Stmt:
        copy = _copy_of(loop) if TRANSPOSE in (loop.annotations or {}) else None
        return loop if copy is None else with_body(loop, copy.in_registers(), copy.tiles)

    return map_loops(func, changed)


@dataclass(frozen=True)
class _Copy:
    """A tile of a copy, one of so many, by its loops: along `inner` lies together what is read,
    along `outer` what is written.
    """

    tiles: int
    loops: Stmt
    store: Stmt
    inner: Stmt
    outer: Stmt
    back: tuple[Any, Any]  # how far this tile is moved back, in a loop
    load: PrimExpr
    made: Made  # of what is loaded, as a vector of so many lanes
    dtype: str  # of its elements
    choice: tuple[Any, Any] | None  # the condition to read, and the number that stands for it
    inside: PrimExpr | None  # whether no element is read again; None: always

    def vector(self, node: TirNode, inner: int, outer: int, lanes: int) -> PrimExpr:
        """The index of a vector that the load or the store begins at an iteration of the loops."""
        new = {
            loop.loop_var: tir.const(at, dtype_of(loop.loop_var))
            for loop, at in ((self.inner, inner), (self.outer, outer))
        }
        loop, back = self.back
        new[loop.loop_var] = new[loop.loop_var] - back
        return tir.Ramp(Analyzer().simplify(substitute(node.indices[0], new)), 1, lanes)

    def in_registers(self) -> Stmt:
        """Load the rows, shuffle, and store the columns."""
        load = self.load
        bound: list[tuple[Any, Any]] = []
        width, count = int(self.inner.extent), int(self.outer.extent)

        def name(value: PrimExpr, lanes: int) -> PrimExpr:
            bound.append((tir.Var(f"row_{len(bound)}", f"{self.dtype}x{lanes}"), value))
            return bound[-1][0]

        loaded = (
            tir.BufferLoad(region_buffer(load), [self.vector(load, 0, n, width)])
            for n in range(count)
        )
        rows = [name(self.made(vector, width), width) for vector in loaded]
        copied = with_vectors(bound, self._stored(transposed(rows, width, name)))
        if self.inside is not None:
            return tir.IfThenElse(self.inside, copied, self.loops)
        if self.choice is None:
            return copied
        condition, other = self.choice
        filled = self._stored([tir.Broadcast(other, count)] * width)
        return tir.IfThenElse(condition, copied, filled)

    def _stored(self, columns: Sequence[PrimExpr]) -> Stmt:
        buffer, count = self.store.buffer, int(self.outer.extent)
        return sequence(
            tir.BufferStore(buffer, column, [self.vector(self.store, n, 0, count)])
            for n, column in enumerate(columns)
        )


def transposed(rows: Sequence[PrimExpr], width: int, name: Name) -> list[PrimExpr]:
    """The columns of rows of `width` lanes, both powers of two; `name` gives a value a variable.

    Rows and lanes change places one bit of their numbers at a time: a shuffle of two vectors each.
    """
    count = len(rows)
    side = min(count, width)
    # More rows than lanes lie side by side, in squares.
    parts = [[rows[n] for n in range(first, count, side)] for first in range(side)]
    lanes = max(count, width)
    found = [_shuffled(p, range(lanes), name) if len(p) > 1 else p[0] for p in parts]
    bit = side // 2
    while bit:
        for n in (n for n in range(side) if not n & bit):
            pair = found[n], found[n + bit]
            low = [i + lanes - bit if i & bit else i for i in range(lanes)]
            high = [i + lanes if i & bit else i + bit for i in range(lanes)]
            found[n], found[n + bit] = (_shuffled(pair, index, name) for index in (low, high))
        bit //= 2
    if width == side:
        return found
    squares = range(0, width, side)
    return [_shuffled([v], range(at, at + side), name) for at in squares for v in found]


def _shuffled(vectors: Sequence[PrimExpr], lanes: Sequence[int], name: Name) -> PrimExpr:
    return name(tir.Shuffle(list(vectors), [tir.const(i) for i in lanes]), len(lanes))


def _copy_of(tile: Stmt) -> _Copy | None:
    """The copy that a loop over tiles is; None for any other loop, which stays as it is."""
    down: Any = tile.body
    across: Any = getattr(down, "body", None)
    if type(down).__name__ != "For" or type(across).__name__ != "For":
        return None
    width, store = int(across.extent), across.body
    elements = range(int(tile.extent) * width)
    is_cut = type(store).__name__ == "IfThenElse"
    if is_cut:
        elements = _where(store.condition, tile, across)
        if store.else_case is not None or len(elements) < width:
            return None
        store = store.then_case
    value: Any = getattr(store, "value", None)
    choice = None
    if is_conditional(value) and not depends(value.args[0], [down.loop_var, across.loop_var]):
        value, choice = value.args[1], (value.args[0], value.args[2])
    load, made = made_of(value, [down.loop_var, across.loop_var])
    if load is None or any(n & n - 1 for n in (int(down.extent), width)):
        return None
    tiles = -(-len(elements) // width)
    back = across, _moved(tile, tiles, tiles * width - len(elements), elements.start)
    for inner, outer in ((across, down), (down, across)):
        read, inside = read_once(load, inner.loop_var, int(inner.extent), outer.loop_var)
        if is_contiguous(read, inner) and is_contiguous(store, outer):
            if inside is not None and (choice is not None or is_cut):
                return None
            return _Copy(
                tiles, down, store, inner, outer, back, read, made, dtype_of(value), choice, inside
            )
    return None


def made_of(value: PrimExpr, within: Sequence[PrimVar]) -> tuple[PrimExpr | None, Made]:
    """The one load that a value is made of, and how, of vectors; None where it is something else.
    What it is cast, shifted and scaled by depends on none of the variables.
    """
    kind = type(value).__name__
    if kind in ("BufferLoad", "TensorLoad"):
        return value, lambda vector, lanes: vector
    if kind == "Cast" and {dtype_of(value), dtype_of(value.value)} <= CAST:
        load, made = made_of(value.value, within)
        dtype = dtype_of(value)
        return load, lambda vector, lanes: made(vector, lanes).astype(f"{dtype}x{lanes}")
    if kind in ("Add", "Sub", "Mul") and not depends(value.b, within):
        load, inner = made_of(value.a, within)
        operator, number = OPERATORS[kind], value.b
        return load, lambda vector, lanes: operator(
            inner(vector, lanes), tir.Broadcast(number, lanes)
        )
    return None, lambda vector, lanes: vector


def _moved(tile: Stmt, tiles: int, over: int, first: int) -> PrimExpr:
    """How far a tile is moved back: the last one by what hangs over, all by less than nothing where
    the first element is not copied.
    """
    last = tir.EQ(tile.loop_var, tir.const(tiles - 1, dtype_of(tile.loop_var)))
    back = tir.Select(last, tir.const(over), tir.const(0)) if over else tir.const(0)
    return back - first if first else back


def is_contiguous(node: TirNode, loop: Stmt) -> bool:
    """Whether an iteration of a loop is the next element of a load or a store."""
    (index,) = node.indices
    step = Analyzer().simplify(substitute(index, {loop.loop_var: loop.loop_var + 1}) - index)
    return bool(getattr(step, "value", None) == 1)


def _where(condition: PrimExpr, tile: Stmt, across: Stmt) -> range:
    """The elements of the tiles for which a condition holds; none if they are not side by side, or
    it depends on something else.
    """
    numbers, width = np.arange(int(tile.extent) * int(across.extent)), int(across.extent)
    known = {tile.loop_var: numbers // width, across.loop_var: numbers % width}
    try:
        holds = np.broadcast_to(evaluated(condition, known), numbers.shape)
    except (KeyError, Unknown):  # KeyError: another variable
        return range(0)
    held = numbers[holds]
    if held.size == 0 or held[-1] - held[0] >= held.size:
        return range(0)
    return range(int(held[0]), int(held[-1]) + 1)
