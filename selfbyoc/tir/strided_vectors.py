"""Strided vectors of a loop as rows and shuffles.

A layout that turns lanes over - queries as [d, lane], an image as [y, x, channel] - reads a vector
with a stride: LLVM loads its elements one by one and puts them together, twice as many instructions
as elements. Where the next turn of the loop reads the neighbours of all of them, as many turns as
there are lanes are a square: its rows are loaded whole and transposed in registers, 8x8 by 24
shuffles in place of 64 loads and 56 insertions. Of the whole kernels' speed, one core of Cascade
Lake with AVX2 and AVX-512 (Nov 2026): conv3-conv3 128x28x28 +8 and +7%, attention 12x197x64 +6 and
+9%, inception 3a +4%, depthwise-conv1 128x56x56 +1 and +14%.

It is done last, on vectors. Conditions that hold for a part of the loop, such as padding, bound the
squares; others are asked once a square.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..tvm import Analyzer, dtype_of, region_buffer, tir
from ..tvm.rewrite import (
    is_conditional,
    map_loads_and_calls,
    map_loops,
    mapped,
    sequence,
    substitute,
    with_range,
)
from ..tvm.types import Buffer, PrimExpr, PrimFunc, Stmt
from ..tvm.vectors import with_vectors
from .lanes import conjuncts, found_in, is_interval, is_of_turn_alone, lane, lanes_of, turns_where
from .vector_transpose import transposed

SQUARES = (4, 8, 16)
BYTES = ("int8", "uint8")  # are widened as their rows are loaded


def with_transposes(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc of vectors, whose loops of strided loads transpose squares."""
    return map_loops(func, lambda loop: _transposing(loop) or loop)


@dataclass(frozen=True)
class _Store:
    """A store of a loop's body: its value where all conditions hold, its loads with a stride, and
    the conditions.
    """

    stmt: Stmt
    value: PrimExpr
    strided: list[PrimExpr]
    conditions: list[PrimExpr]


def _transposing(loop: Stmt) -> Stmt | None:
    """The loop in squares, or None where it is none of these."""
    extents = [getattr(e, "value", None) for e in (loop.min, loop.extent)]
    if extents[0] != 0 or extents[1] is None or int(loop.kind) != 0 or loop.annotations:
        return None
    stores = _stores(loop)
    if not stores:
        return None
    lanes = lanes_of(stores[0].strided[0])
    conditions = [c for store in stores for c in store.conditions]
    bounds = turns_where(conditions, loop.loop_var, int(extents[1]))
    if bounds is None or bounds[1] - bounds[0] < lanes:
        return None
    return _in_squares(loop, stores, lanes, *bounds)


def _stores(loop: Stmt) -> list[_Store]:
    """The stores of a body that is nothing else and can be computed by squares; else none."""
    body = loop.body
    found = list(body.seq) if type(body).__name__ == "SeqStmt" else [body]
    whole: list[_Store] = []
    for stmt in found:  # most bodies are products: their first store says so
        store = _store(stmt, loop.loop_var) if type(stmt).__name__ == "BufferStore" else None
        if store is None:
            return []
        whole.append(store)
    if len({lanes_of(load) for store in whole for load in store.strided}) != 1:
        return []
    written = [store.stmt.buffer for store in whole]
    read = [region_buffer(load) for store in whole for load in _loads(store.stmt.value)]
    if any(_is_same(r, w) for r in read for w in written):
        return []
    pairs = itertools.combinations(whole, 2)
    return whole if all(_are_apart(*pair, loop.loop_var) for pair in pairs) else []


def _are_apart(one: _Store, other: _Store, turn: PrimExpr) -> bool:
    """Whether two stores never write the same element in two turns of a square: one of them does
    all its turns first.
    """
    if not _is_same(one.stmt.buffer, other.stmt.buffer):
        return True
    (first, width), (second, width_of_other) = (_place(store.stmt) for store in (one, other))
    ana = Analyzer()
    step = ana.simplify(substitute(first, {turn: turn + 1}) - first)
    gap = ana.simplify(second - first)
    known: list[Any] = [getattr(number, "value", None) for number in (gap, step)]
    if None in known:
        return False
    gap, step = known
    lanes = lanes_of(one.strided[0])
    moved = [gap + k * step for k in range(-lanes, lanes + 1) if k]
    return not any(-width_of_other < at < width for at in moved)


def _place(stmt: Stmt) -> tuple[PrimExpr, int]:
    """The first element that a store writes, and how many lie side by side from there."""
    (index,) = stmt.indices
    return lane(index, 0) if lanes_of(index) > 1 else index, lanes_of(index)


def _store(stmt: Stmt, turn: PrimExpr) -> _Store | None:
    """A store whose strided loads all move on by one element a turn."""
    # What stands for a condition that fails may lie outside of its buffer where it holds.
    value = map_loads_and_calls(stmt.value, lambda n: n.args[1] if is_conditional(n) else n)
    strided = [load for load in _loads(value) if _is_strided(load)]
    if not strided or len(stmt.indices) != 1:
        return None
    if not all(_moves_on(load, turn) for load in strided):
        return None
    conditions: list[Any] = []
    for call in found_in(stmt.value, is_conditional):
        conditions += conjuncts(call.args[0])
    if not all(is_interval(c, turn) for c in conditions):
        return None
    return _Store(stmt, value, strided, conditions)


def _loads(expr: PrimExpr) -> list[PrimExpr]:
    return found_in(expr, lambda node: type(node).__name__ in ("BufferLoad", "TensorLoad"))


def _is_same(one: Buffer, other: Buffer) -> bool:
    mine: Buffer = getattr(one, "data", one)
    return bool(one.same_as(other) or mine.same_as(getattr(other, "data", other)))


def _is_strided(load: PrimExpr) -> bool:
    """Whether a vector's elements do not lie side by side."""
    index = load.indices[0]
    if lanes_of(index) == 1 or type(index).__name__ == "Broadcast":
        return False
    return not (type(index).__name__ == "Ramp" and getattr(index.stride, "value", 0) == 1)


def _moves_on(load: PrimExpr, turn: PrimExpr) -> bool:
    """Whether each element's neighbour is the next turn's, in vectors that make up squares."""
    if len(load.indices) != 1 or lanes_of(load) not in SQUARES:
        return False
    if _element(load) not in ("float32", "int32", *BYTES):
        return False
    lanes = [lane(load.indices[0], i) for i in range(lanes_of(load))]
    if any(at is None for at in lanes):
        return False
    ana, next_turn = Analyzer(), {turn: turn + 1}
    steps = [ana.simplify(substitute(at, next_turn) - at) for at in lanes]
    return all(getattr(step, "value", None) == 1 for step in steps)


def _in_squares(loop: Stmt, stores: list[_Store], lanes: int, first: int, end: int) -> Stmt:
    """Turns before, squares, and turns after. The last square starts earlier, and computes some
    turns again, rather than leave any.
    """
    count = -(-(end - first) // lanes)
    square = tir.Var(f"{loop.loop_var.name}_square", dtype_of(loop.loop_var))
    at = first + square * lanes
    if (end - first) % lanes:
        at = tir.min(at, end - lanes)
    last = at + (lanes - 1)
    asked = [c for s in stores for c in s.conditions if not is_of_turn_alone(c, loop.loop_var)]
    body = sequence([_square(s, lanes, loop.loop_var, at) for s in stores])
    if asked:
        ends = [substitute(c, {loop.loop_var: turn}) for c in asked for turn in (at, last)]
        turn = tir.Var(f"{loop.loop_var.name}_turn", dtype_of(loop.loop_var))
        other = with_range(loop, turn, lanes, substitute(loop.body, {loop.loop_var: at + turn}))
        body = tir.IfThenElse(tir.all(*ends), body, other)
    parts = [with_range(loop, square, count, body)]
    if first:
        parts.insert(0, _turns(loop, 0, first))
    if end < int(loop.extent):
        parts.append(_turns(loop, end, int(loop.extent)))
    return sequence(parts)


def _turns(loop: Stmt, first: int, end: int) -> Stmt:
    """Some turns as they were."""
    turn = tir.Var(f"{loop.loop_var.name}_turn", dtype_of(loop.loop_var))
    return with_range(loop, turn, end - first, substitute(loop.body, {loop.loop_var: turn + first}))


def _square(store: _Store, lanes: int, turn: PrimExpr, at: PrimExpr) -> Stmt:
    """As many turns of a store as it has lanes, from `at` on."""
    bound: list[tuple[Any, Any]] = []

    def named(value: PrimExpr) -> PrimExpr:
        var = tir.Var(f"row_{len(bound)}", dtype_of(value))
        bound.append((var, value))
        return var

    columns = [_columns(load, lanes, turn, at, named) for load in store.strided]
    stores = []
    wide = {var for var, _ in bound}
    for i in range(lanes):

        def change(node: PrimExpr, i: int = i) -> PrimExpr:
            place = next((k for k, load in enumerate(store.strided) if load.same_as(node)), None)
            return node if place is None else columns[place][i]

        stmt, now = store.stmt, {turn: at + i}
        value = substitute(map_loads_and_calls(store.value, change), now)
        made = tir.BufferStore(stmt.buffer, value, [substitute(stmt.indices[0], now)])
        stores.append(mapped(made, "Cast", lambda cast: _as_widened(cast, wide)))
    return with_vectors(bound, sequence(stores))


def _as_widened(cast: PrimExpr, wide: set[Any]) -> PrimExpr:
    """A byte of a square as int32, which it is already."""
    inner = cast.value
    if not isinstance(inner, tir.Cast) or inner.value not in wide:
        return cast
    return inner.value if dtype_of(cast) == dtype_of(inner.value) else cast


def _element(load: PrimExpr) -> str:
    return str(dtype_of(load)).partition("x")[0]


def _columns(
    load: PrimExpr, lanes: int, turn: PrimExpr, at: PrimExpr, named: Callable[[PrimExpr], PrimExpr]
) -> list[PrimExpr]:
    """What the load reads in each turn of a square."""
    starts = [substitute(lane(load.indices[0], i), {turn: at}) for i in range(lanes)]
    buffer, is_byte = region_buffer(load), _element(load) in BYTES
    rows = [tir.BufferLoad(buffer, [tir.Ramp(start, 1, lanes)]) for start in starts]
    rows = [named(tir.Cast(f"int32x{lanes}", row) if is_byte else row) for row in rows]

    def shuffle(one: PrimExpr, other: PrimExpr, places: Sequence[int]) -> PrimExpr:
        return named(tir.Shuffle([one, other], [tir.const(i, "int32") for i in places]))

    found = transposed(rows, shuffle)
    return [tir.Cast(dtype_of(load), column) for column in found] if is_byte else found
