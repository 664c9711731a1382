"""The columns that fill no tile apart, in loops over a symbolic number of tiles.

    for k in (n - 1) // 16 + 1:           for k in n // 16:
        for lane in 16:                       for lane in 16: ...
            if k * 16 + lane < n: ...     for k in n % 16 // 4:
                                              for lane in 4: ...
                                          for k in n % 4: ...

Where the numbers are constant TVM does so itself; a test in a vector it takes apart, lane by lane.
"""

from __future__ import annotations

from typing import Any

from ..tvm import Analyzer, dtype_of, structural_equal, tir, walk
from ..tvm.predicates import with_predicates
from ..tvm.rewrite import map_loops, sequence, substitute, variables_in, with_body
from ..tvm.symbolic import each_defined_once, map_products
from ..tvm.types import Buffer, PrimExpr, PrimFunc, PrimVar, Stmt
from .lanes import conjuncts

NARROW = (4, 1)  # lanes of what is left
HINT = "pragma_loop_partition_hint"


def with_tails(func: PrimFunc) -> PrimFunc:
    """A PrimFunc with such loops in parts."""
    return each_defined_once(map_loops(func, _in_parts))


def _in_parts(loop: Stmt) -> Stmt:
    if HINT not in dict(loop.annotations) or isinstance(loop.extent, tir.IntImm):
        return loop
    tests = _tests(loop)
    found = _tile(tests, loop)
    if found is None:
        return loop
    tile, lanes = found
    body, bound = _without(loop.body, tests), tests[0].b
    done, parts = tir.const(0, dtype_of(loop.loop_var)), []
    for width in (tile, *(w for w in NARROW if w < tile)):
        turns = tir.floordiv(bound - done, width)
        part = _of_width(body, loop.loop_var, tile, lanes, (done, width))
        if part is None:
            return loop
        parts.append(tir.For(part[0], tir.const(0, dtype_of(part[0])), turns, loop.kind, part[1]))
        done = done + turns * width
    return sequence(parts)


def _of_width(
    body: Stmt, var: PrimExpr, tile: int, lanes: list[PrimExpr], at: tuple[PrimExpr, int]
) -> tuple[PrimVar, Stmt] | None:
    """A turn, and what it does with fewer lanes from some element on; None where more than places
    depend on the turn.
    """
    start, width = at
    turn = tir.Var("tile", dtype_of(var))
    first = start + turn * width

    def place(node: PrimExpr) -> PrimExpr:
        is_place = node.a.same_as(var) and isinstance(node.b, tir.IntImm)
        return first * (int(node.b) // tile) if is_place and int(node.b) % tile == 0 else node

    def narrowed(loop: Stmt) -> Stmt:
        if not any(loop.loop_var.same_as(lane) for lane in lanes):
            return loop
        return with_body(loop, loop.body, tir.const(width, dtype_of(loop.extent)))

    done = map_products(map_loops(substitute(body, _memory(body)), narrowed), place)
    return None if var in variables_in(done) else (turn, done)


def _memory(body: Stmt) -> dict[Buffer, Buffer]:
    """The buffers of a statement, and others in their place."""
    found: dict[Any, Any] = {}

    def visit(node: Stmt) -> None:
        found.update(
            {buffer: type(buffer)(buffer.name, buffer.ty) for buffer in node.alloc_buffers}
        )

    walk(body, visit, "SBlock")
    return found


def _tests(loop: Stmt) -> list[PrimExpr]:
    """What must be less than what, in what is in a loop, where that depends on its turn."""
    found: list[Any] = []

    def visit(node: Stmt) -> None:
        found.extend(c for c in conjuncts(node.predicate) if loop.loop_var in variables_in(c))

    walk(loop.body, visit, "SBlockRealize")
    return found


def _tile(tests: list[PrimExpr], loop: Stmt) -> tuple[int, list[PrimVar]] | None:
    """So many elements a turn, and the variables of their lanes, if all tests are that turn * tile
    + lane < one bound.
    """
    if not tests or not all(type(test).__name__ == "LT" for test in tests):
        return None
    if not all(structural_equal(test.b, tests[0].b) for test in tests):
        return None
    ana, var, tiles, lanes = Analyzer(), loop.loop_var, set(), []
    for test in tests:
        step = ana.simplify(substitute(test.a, {var: var + 1}) - test.a)
        lanes.append(ana.simplify(test.a - var * step))
        tiles.add(int(step) if isinstance(step, tir.IntImm) else 0)
    extents: list[int] = []

    def visit(node: Stmt) -> None:
        if any(node.loop_var.same_as(lane) for lane in lanes):
            extents.append(int(node.extent) if isinstance(node.extent, tir.IntImm) else 0)

    walk(loop.body, visit, "For")
    alike = len(tiles) == 1 and set(extents) == tiles
    return (tiles.pop(), lanes) if alike and len(extents) == len(lanes) else None


def _without(body: Stmt, tests: list[PrimExpr]) -> Stmt:
    """The same without these tests."""

    def left(predicate: PrimExpr) -> PrimExpr:
        kept = [c for c in conjuncts(predicate) if not any(c.same_as(test) for test in tests)]
        return tir.all(*kept) if kept else tir.const(1, "bool")

    return with_predicates(body, left)
