"""Loops that end early, at a number that is computed before them.

    seen[0] = ...                       # a block that is marked (COUNT)
    for t in range(keys / 4): ...       # a loop that is marked (CUT: 4)
  ->
    for t in range(min(keys / 4, seen[0] / 4)): ...

A schedule marks both. The number is a multiple of what each iteration covers.
"""

from __future__ import annotations

from typing import Any

from ..tvm import dtype_of, region_buffer, tir, walk
from ..tvm.rewrite import map_loops, substitute, with_body
from ..tvm.types import Loop, PrimExpr, PrimFunc, Schedule, Stmt, TirNode

COUNT = "tefuse.count"  # on a block that computes one number in an iteration of its loops
CUT = "tefuse.cut"  # on a loop: how much of that number an iteration covers


def cut_by(sch: Schedule, loop: Loop, step: int) -> None:
    """The loop ends where the function's count is reached, `step` of it a turn."""
    sch.annotate(loop, CUT, step)


def with_cut_loops(func: PrimFunc) -> PrimFunc:
    """A scheduled PrimFunc whose marked loops end at its count."""
    count = _count(func)
    if count is None:
        return func

    def cut(loop: Stmt) -> Stmt:
        step = int((loop.annotations or {}).get(CUT, 0))
        if not step:
            return loop
        turns = tir.floordiv(count, step).astype(dtype_of(loop.extent))
        return with_body(loop, loop.body, tir.Min(loop.extent, turns))

    return map_loops(func, cut)


def _count(func: PrimFunc) -> PrimExpr | None:
    """What the marked block stores, by the loops around it."""
    found: list[Any] = []
    of_one: dict[Any, Any] = {}  # loops of one turn: the block's own are around no other loop

    def visit(node: TirNode) -> None:
        kind = type(node).__name__
        if kind == "For" and getattr(node.extent, "value", None) == 1:
            of_one[node.loop_var] = node.min
        elif kind.endswith("BlockRealize") and COUNT in node.block.annotations:
            found.append(node)

    walk(func.body, visit)
    if not found:
        return None
    (realize,) = found
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    values = {axis.var: substitute(value, of_one) for axis, value in pairs}
    (written,) = realize.block.writes
    index = [substitute(extent.min, values) for extent in written.region]
    return tir.BufferLoad(region_buffer(written), index)
