"""Stack frames that begin at a whole vector: no spilled register lies in two lines of cache.

LLVM aligns a frame by an array that it knows before it allocates registers. Once it spills some, it
is too late: their places begin at any multiple of 16 bytes (X86RegisterInfo::canRealignStack), and
a vector of 64 bytes lies in two lines in three processes of four, whenever it is stored and loaded.
432x14x14, 3x3 in groups of 48, which spills one of 21 sums: 676, 820 or 923 us, as the system
chooses the stack's address, and 676 always with this array (one core of Zen 4, Nov 2026).
"""

from __future__ import annotations

from ..tvm import tir, walk
from ..tvm.rewrite import map_loops, prefetch_op, sequence, with_body
from ..tvm.stack import on_stack
from ..tvm.types import PrimFunc, Stmt

ALIGNED = 16  # bytes, by the calling conventions of x86-64 and AArch64


def with_aligned_stack(func: PrimFunc, lanes: int) -> PrimFunc:
    """A lowered PrimFunc for a CPU of so many float32 lanes, whose parallel loops, each of which is
    a function for LLVM, keep an array of one vector; or it does, where it has none.
    """
    if 4 * lanes <= ALIGNED:
        return func
    loops: list[Stmt] = []

    def visit(loop: Stmt) -> None:
        if loop.kind == tir.ForKind.PARALLEL:
            loops.append(loop)

    def change(loop: Stmt) -> Stmt:
        return (
            with_body(loop, _framed(loop.body, lanes))
            if loop.kind == tir.ForKind.PARALLEL
            else loop
        )

    walk(func.body, visit, "For")
    return map_loops(func, change) if loops else func.with_body(_framed(func.body, lanes))


def _framed(body: Stmt, lanes: int) -> Stmt:
    """With an array that is prefetched: one that is only loaded and stored becomes a register."""
    vector = tir.decl_buffer((1,), f"float32x{lanes}", "aligned", scope="local")
    keep = tir.Evaluate(prefetch_op(tir.BufferLoad(vector, [0])))
    return on_stack(vector, sequence([keep, body]))
