"""Loops over a whole tile of a symbolic number of rows, apart from those over the last tile.

The rows after the last one are copies of it: row 3 of a tile is min(tile * 8 + 3, n - 1). So each
row has an address of its own, and the register tile of attention's scores, 12 keys high, has more
of these than there are registers for addresses. In a whole tile one address and constants do:

    for k: ... x[min(t * 8 + 3, n - 1), k] ...
    if t * 8 + 7 <= n - 1: (for k: ... x[t * 8 + 3, k] ...) else: (as it was)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..tvm import Analyzer, dtype_of, structural_equal, tir, walk
from ..tvm.rewrite import in_ssa, map_loops, mapped
from ..tvm.types import PrimExpr, PrimFunc, Stmt, TirNode
from .loop_nests import loop_nests

_MEMORY = ("Allocate", "AllocBuffer", "DeclBuffer", "AttrStmt")
_BINDING = ("LetStmt", "Let", "Bind")
FEWEST = 2  # rows: of one there is one address in any case


@dataclass(frozen=True)
class _Clamped:
    """min(row, last), of a row that is the same in all turns of a loop."""

    node: PrimExpr
    row: PrimExpr
    last: PrimExpr


def with_whole_tiles(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc whose loops that read clamped rows of a symbolic number are there
    twice: for tiles that are whole, and for the last one.
    """
    found: dict[Any, list[_Clamped]] = {}
    for nest in loop_nests(func.body):
        if not any(loop.loop_var in found for loop in nest):
            clamped = _clamped(nest[-1])
            if len(clamped) >= FEWEST:
                found[nest[-1].loop_var] = clamped
    if not found:
        return func

    def apart(loop: Stmt) -> Stmt:
        clamped = found.get(loop.loop_var)
        return loop if clamped is None else tir.IfThenElse(*_both(loop, clamped))

    return in_ssa(map_loops(func, apart))


def _both(loop: Stmt, clamped: Sequence[_Clamped]) -> tuple[PrimExpr, Stmt, Stmt]:
    """Whether the tile is whole, the loop over it then, and in any case."""

    def free(node: PrimExpr) -> PrimExpr:
        same = (c.row for c in clamped if structural_equal(c.node, node))
        return next(same, node)

    return tir.all(*_in_range(clamped)), mapped(loop, "Min", free), loop


def _in_range(clamped: Sequence[_Clamped]) -> list[PrimExpr]:
    """That each row is one: of those that are a constant apart, that the largest is."""
    ana, largest = Analyzer(), list[_Clamped]()
    for each in clamped:
        for n, other in enumerate(largest):
            away = ana.simplify(each.row - other.row)
            if isinstance(away, tir.IntImm) and structural_equal(each.last, other.last):
                largest[n] = each if int(away) > 0 else other
                break
        else:
            largest.append(each)
    return [each.row <= each.last for each in largest]


def _clamped(loop: Stmt) -> list[_Clamped]:
    """What a loop reads of clamped rows, each once; nothing where it has memory of its own, or they
    change from turn to turn.
    """
    inside: list[Any] = [loop.loop_var]
    minima: list[Any] = []
    has_memory = False

    def visit(node: TirNode) -> None:
        nonlocal has_memory
        kind = type(node).__name__
        has_memory = has_memory or kind in _MEMORY
        if kind == "For":
            inside.append(node.loop_var)
        elif kind in _BINDING:
            inside.append(node.var)
        elif kind == "Min":
            minima.append(node)

    walk(loop.body, visit, "For", "Min", *_MEMORY, *_BINDING)
    if has_memory:
        return []
    found: list[_Clamped] = []
    for node in minima:
        clamped = _row_and_last(node, inside)
        if clamped is not None and not any(structural_equal(c.node, node) for c in found):
            found.append(clamped)
    return found


def _row_and_last(node: PrimExpr, inside: Sequence[PrimExpr]) -> _Clamped | None:
    """A minimum of scalars that are known before a loop, the second not before run time."""
    if "x" in dtype_of(node) or _has(node, lambda v: any(v.same_as(i) for i in inside)):
        return None
    is_symbolic = _has(node.b, lambda var: True)
    return _Clamped(node, node.a, node.b) if is_symbolic else None


def _has(expr: PrimExpr, which: Callable[[PrimExpr], bool]) -> bool:
    """Whether an expression has such a variable."""
    found: list[Any] = []

    def visit(node: PrimExpr) -> None:
        if which(node):
            found.append(node)

    walk(expr, visit, "Var", "SizeVar")
    return bool(found)
