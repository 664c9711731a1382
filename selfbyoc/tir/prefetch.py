"""Software prefetch of packed weights, put into a scheduled function just before it is lowered.

A kernel reads a weight once for each call, from memory or the last cache: the first tile of a piece
waits for it, as the hardware's prefetcher starts anew at every page of 4 KB. So while one piece of
a weight is multiplied, the lines of the next are prefetched. A schedule says where, by
`steps.prefetch_next(sch, piece, at, weight)`; TensorIR has no step for it.

All sizes are derived from the function: a piece is what one run of the loop `piece` reads of the
weight, in any layout; the next one is that of its next run, or of the first run in the next
iteration of the loops around it, or where the schedule says. The runs of the loop `at`, inside of
`piece`, share its lines.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..tvm import Analyzer, dtype_of, param_buffers, region_buffer, tir, tvm, walk
from ..tvm.rewrite import map_loops, mapped, prefetch_op, substitute, variables_in, with_body
from ..tvm.types import Buffer, PrimExpr, PrimFunc, Stmt
from .loop_nests import loop_nests

# Annotations of loops: its runs read a piece of a weight each, and: its runs ask (JSON of the
# weight's name, and of how far the next piece is away by index, or null).
PIECE, AHEAD = "tefuse.prefetch.piece", "tefuse.prefetch"
LINE = 64  # bytes of a line of all caches; 128 on some ARM, where every second one is for nothing
MOST_ROWS = 8  # of a piece, whose lines are written out one by one


@dataclass(frozen=True)
class _Box:
    """What one run of a loop reads of a buffer: first indices, and extents."""

    first: list[PrimExpr]
    extents: list[int]

    def runs(self, shape: Sequence[PrimExpr]) -> tuple[int, int]:
        """The dimension from which on it is contiguous, and how many elements that are."""
        for dim in range(len(shape) - 1, 0, -1):
            if self.extents[dim] != getattr(shape[dim], "value", None):  # or it is open
                return dim, math.prod(self.extents[dim:])
        return 0, math.prod(self.extents)


def with_prefetch(func: PrimFunc) -> PrimFunc:
    """A scheduled PrimFunc whose annotated loops prefetch."""
    params = {str(b.name): b for b in param_buffers(func) if hasattr(b, "shape")}
    asked: dict[Any, list[Any]] = {}
    for nest in loop_nests(func.body):
        name, to = json.loads(str((nest[-1].annotations or {}).get(AHEAD, '["", null]')))
        if name in params:
            asked[nest[-1].loop_var] = _lines(nest, params[name], to)
    if not any(asked.values()):
        return func

    def prefetching(loop: Stmt) -> Stmt:
        lines = asked.get(loop.loop_var)
        return with_body(loop, tir.SeqStmt([*lines, loop.body])) if lines else loop

    return map_loops(func, prefetching)


def _lines(nest: Sequence[Stmt], buffer: Buffer, to: list[int] | None) -> list[Stmt]:
    """What a run of the last loop prefetches: its share of the piece after the one at hand."""
    pieces = [i for i, loop in enumerate(nest) if (loop.annotations or {}).get(PIECE)]
    at = pieces[-1] if pieces else 0
    box = _box(nest[at], nest[-1], buffer)
    # The sums' start has loops of its own with the same annotations, but reads nothing.
    if not pieces or box is None:
        return []
    dim, run = box.runs(list(buffer.shape))
    each = LINE * 8 // _bits(buffer)  # elements of a line
    runs, number = 1, tir.const(0, dtype_of(nest[-1].loop_var))
    for loop in nest[at + 1 :]:
        runs, number = runs * loop.extent, number * loop.extent + loop.loop_var
    ana = _analyzer(nest[at + 1 :])
    runs = ana.simplify(runs) if nest[at + 1 :] else tir.const(1, "int32")
    if to is None:
        first = _behind(box.first, nest[: at + 1])
    else:
        first = [i + n for i, n in zip(box.first, to, strict=True)]

    def prefetched(place: Sequence[PrimExpr]) -> Stmt:
        *row, line = place
        index = [f + o for f, o in zip(first, [*row, *[0] * (len(first) - dim)], strict=True)]
        # An index past the end of a row is the one so many elements further on.
        index = [ana.simplify(i) for i in [*index[:-1], index[-1] + line * each]]
        return tir.Evaluate(prefetch_op(tir.BufferLoad(buffer, index)))

    rows, lines = box.extents[:dim], -(-run // each)
    if type(runs).__name__ != "IntImm":
        return [_shared_by_some(rows, lines, runs, number, prefetched)]
    lines, share, places = _shared(rows, lines, int(runs), number)
    found = [prefetched(place) for place in places]
    if 2 * int(runs) * share < 3 * lines:
        return found
    found_all = tir.SeqStmt(found) if len(found) > 1 else found[0]
    return [tir.IfThenElse(ana.simplify(number * share < lines), found_all, None)]


def _shared_by_some(
    rows: Sequence[int],
    lines: int,
    runs: PrimExpr,
    number: PrimExpr,
    prefetched: Callable[[tuple[PrimExpr, ...]], Stmt],
) -> Stmt:
    """The same of a symbolic number of runs: how many lines of every row a run does is known when
    it runs. No line's place is divided: 16 rows by 384x384 take 21 us with that, 18 without.
    """
    are_few = math.prod(rows) <= MOST_ROWS
    total = lines if are_few else lines * math.prod(rows)
    every = list(itertools.product(*map(range, rows))) if are_few else []

    def ask(place: PrimExpr) -> Stmt:
        places = [(*row, place) for row in every] if are_few else [_place(place, rows, lines)]
        found = [prefetched(at) for at in places]
        return tir.SeqStmt(found) if len(found) > 1 else found[0]

    share = tir.floordiv(total - 1, runs) + 1
    turn, first = tir.Var("line", dtype_of(number)), number * share
    zero, own = tir.const(0, dtype_of(number)), tir.Min(share, total - first)
    several = tir.For(turn, zero, own, tir.ForKind.SERIAL, ask(first + turn))
    # Mostly there are as many runs as lines: a loop of one turn takes longer than what it asks for.
    one = tir.IfThenElse(number < total, ask(number), None)
    return tir.IfThenElse(runs >= total, one, several)


def _place(number: PrimExpr, rows: Sequence[int], lines: int) -> tuple[PrimExpr, ...]:
    """The indices of a row and the line in it, of the line of this number."""
    place = []
    for extent in (lines, *reversed(rows)):
        place.append(tir.floormod(number, extent))
        number = tir.floordiv(number, extent)
    return tuple(reversed(place))


def _shared(
    rows: Sequence[int], lines: int, runs: int, number: PrimExpr
) -> tuple[int, int, list[tuple[PrimExpr, ...]]]:
    """Lines that the runs of a loop prefetch between them, how many each, and which the one of this
    number does: indices of a row, and the line in it.

    Each does some lines of every row; of rows with fewer lines than there are runs, some rows.
    """
    if lines >= runs:
        share = -(-lines // runs)
        every = itertools.product(*(range(extent) for extent in rows))
        return lines, share, [(*row, number * share + i) for row in every for i in range(share)]
    total = lines * math.prod(rows)
    share = -(-total // runs)
    return total, share, [_place(number * share + i, rows, lines) for i in range(share)]


def _bits(buffer: Buffer) -> int:
    return int("".join(c for c in str(buffer.dtype) if c.isdigit()) or 32)


def _box(loop: Stmt, at: Stmt, buffer: Buffer) -> _Box | None:
    """What one run of a loop reads of a buffer in a loop inside of it; None if it is no box of
    constant size.
    """
    least: dict[Any, Any] = {}
    most: dict[Any, Any] = {}
    found: list[list[Any]] = []

    def visit(node: PrimExpr) -> None:
        kind = type(node).__name__
        if kind == "For":
            dtype = dtype_of(node.loop_var)
            least[node.loop_var] = tir.const(0, dtype)
            most[node.loop_var] = node.extent - 1
        elif kind.endswith("BlockRealize"):
            values = zip((v.var for v in node.block.iter_vars), node.iter_values, strict=True)
            for var, value in values:
                least[var] = most[var] = value

    def visit_load(node: PrimExpr) -> None:
        if region_buffer(node).same_as(buffer):
            found.append(list(node.indices))

    walk(loop.body, visit)
    walk(at.body, visit_load, "BufferLoad", "TensorLoad")
    if not found:
        return None
    indices = [_unclamped(index, set(least)) for index in found[0]]
    first, last = (
        [substitute(substitute(index, new), new) for index in indices] for new in (least, most)
    )
    ana = Analyzer()
    away = [ana.simplify(z - a) for a, z in zip(first, last, strict=True)]
    if not all(type(a).__name__ == "IntImm" for a in away):
        return None
    return _Box(first, [int(a) + 1 for a in away])


def _unclamped(index: PrimExpr, moving: set[Any]) -> PrimExpr:
    """An index that goes on where the last element is read again instead: the least of what moves
    and what does not.
    """

    def going_on(least: PrimExpr) -> PrimExpr:
        sides = [side for side in (least.a, least.b) if variables_in(side) & moving]
        return sides[0] if len(sides) == 1 else least

    return mapped(index, "Min", going_on)


def _behind(index: Sequence[PrimExpr], loops: Sequence[Stmt]) -> list[PrimExpr]:
    """An index in the next iteration of some loops: of the last one, or of the one around it."""
    new, carry = {}, 1
    for loop in loops[:0:-1]:
        count = loop.loop_var + carry
        new[loop.loop_var] = tir.floormod(count, loop.extent)
        carry = tir.floordiv(count, loop.extent)
    new[loops[0].loop_var] = loops[0].loop_var + carry
    ana = _analyzer(loops[1:])
    return [ana.simplify(substitute(i, new)) for i in index]


def _analyzer(loops: Sequence[Stmt]) -> Analyzer:
    ana = Analyzer()
    for loop in loops:
        ana.bind(loop.loop_var, tvm.ir.Range.from_min_extent(loop.min, loop.extent))
    return ana
