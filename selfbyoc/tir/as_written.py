"""Loops that LLVM should leave as they are written: a schedule says so of a block.

`sch.annotate(block, AS_WRITTEN, 1)` goes with the block until it is lowered.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..machine.unrolling import without_unrolling
from ..tvm import walk
from ..tvm.types import PrimFunc, Stmt, Target

AS_WRITTEN = "tefuse.as_written"


def target_as_written(functions: Iterable[PrimFunc], target: Target) -> Target:
    """The target of scheduled functions, by whose model LLVM does not unroll if a block asks."""
    asked: list[Stmt] = []

    def visit(block: Stmt) -> None:
        if AS_WRITTEN in block.annotations:
            asked.append(block)

    for func in functions:
        walk(func.body, visit, "Block", "SBlock")
    return without_unrolling(target) if asked else target
