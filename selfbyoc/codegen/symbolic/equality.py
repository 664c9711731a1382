"""Whether two scheduled functions are the same, where one says more than it has to.

A kernel of all sizes has tiles of 16 columns, of which nine are there; one that was scheduled for
nine has tiles of nine. A loop of one turn, a bound that holds anyway: simplified, both are gone.
"""

from __future__ import annotations

from typing import Any

from ...tir.lanes import conjuncts
from ...tvm import GENERATION, dtype_of, structural_equal, tir, tvm, walk
from ...tvm.rewrite import map_loops, with_body
from ...tvm.types import PrimExpr, PrimFunc, Stmt


def are_the_same(one: PrimFunc, other: PrimFunc) -> bool:
    """Whether two scheduled PrimFuncs do the same for the same reasons; what no computer runs is
    like nothing.
    """
    if _divides_by_zero(one) or _divides_by_zero(other):  # TVM cannot simplify it either
        return False
    return bool(structural_equal(_simplified(one), _simplified(other)))


def _divides_by_zero(func: PrimFunc) -> bool:
    """Whether an index does: a formula has no tiles of a size that is too small for it."""
    by: list[Any] = []
    walk(func.body, lambda node: by.append(node.b), "FloorDiv", "FloorMod")
    return any(isinstance(b, tir.IntImm) and int(b) == 0 for b in by)


def _simplified(func: PrimFunc) -> PrimFunc:
    return _plain(map_loops(_plain(func), _cut))


def _plain(func: PrimFunc) -> PrimFunc:
    name = "Simplify" if GENERATION == "relay" else "StmtSimplify"
    return getattr(tir.transform, name)()(tvm.IRModule({"main": func}))["main"]


def _cut(loop: Stmt) -> Stmt:
    """A loop as far as anything in it runs."""
    bounds: list[int | None] = []

    def visit(node: Stmt) -> None:
        bounds.append(_bound(node.predicate, loop.loop_var))

    walk(loop.body, visit, "BlockRealize", "SBlockRealize")
    if not bounds or None in bounds or not isinstance(loop.extent, tir.IntImm):
        return loop
    turns = min(int(loop.extent), max(b for b in bounds if b is not None))
    return with_body(loop, loop.body, tir.IntImm(dtype_of(loop.extent), turns))


def _bound(condition: PrimExpr, var: PrimExpr) -> int | None:
    """Below what a variable has to be for a condition to hold, if it says so."""
    for part in conjuncts(condition):
        if type(part).__name__ == "LT" and part.a.same_as(var) and isinstance(part.b, tir.IntImm):
            return int(part.b)
    return None
