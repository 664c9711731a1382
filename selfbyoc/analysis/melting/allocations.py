"""The intermediate buffers of a scheduled function: where they lie, and how large they really are.

TVM's own passes decide it: a buffer goes under the innermost loop that holds all its uses, and
shrinks to what is used there. Sizes are before TVM lets buffers of disjoint lifetimes share memory.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from ...ops.cost import item_bytes
from ...tvm import scope_of, storage_passes, tvm
from ...tvm.types import Buffer, PrimFunc, Stmt, Target
from .counting import Range, enter

# TVM's code generators put smaller buffers on the stack and ask the runtime for others
# (kMaxStackAlloca); a `local` buffer too, but for us (tir/stack_tiles.py).
STACK = 1024
PARALLEL = 1  # tir.ForKind


@dataclass(frozen=True)
class Allocation:
    """One buffer, as it is allocated."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scope: str
    trips: int = 1  # iterations of the loops around it
    tasks: int = 0  # of the parallel ones among them; 0 outside of any

    @property
    def bytes(self) -> int:
        """Of one copy."""
        return math.prod(self.shape) * item_bytes(self.dtype)

    @property
    def memory(self) -> str:
        """Where it is: "local tile", "stack" or "heap"."""
        if self.scope not in ("global", ""):
            return "local tile" if self.scope == "local" else self.scope
        return "stack" if self.bytes < STACK else "heap"

    def live(self, threads: int) -> int:
        """Bytes that exist at once: one copy a thread inside of a parallel loop."""
        return self.bytes * max(1, min(self.tasks, threads))


def threads_of(target: Target | None) -> int:
    """Threads that a kernel of this target runs on; 1 for a GPU, which is not counted so."""
    if target is not None and str(target.kind) not in ("llvm", "c"):
        return 1
    told = target.attrs.get("num-cores") if target is not None else None
    return int(told or 0) or len(os.sched_getaffinity(0))


def allocations(func: PrimFunc) -> tuple[Allocation, ...]:
    """The buffers that a scheduled PrimFunc allocates, outermost first."""
    mod = tvm.IRModule({"main": func})
    for step in storage_passes():
        mod = step(mod)
    found: list[Allocation] = []
    _visit(mod["main"].body, (), 0, found)
    return tuple(found)


def _visit(stmt: Stmt, loops: tuple[Range, ...], tasks: int, found: list[Allocation]) -> None:
    kind = type(stmt).__name__
    if kind == "For":
        loop, _ = enter(stmt, loops)
        inside = max(1, tasks) * loop.extent if int(stmt.kind) == PARALLEL else tasks
        _visit(stmt.body, (*loops, loop), inside, found)
    elif kind == "SeqStmt":
        for part in stmt.seq:
            _visit(part, loops, tasks, found)
    elif kind in ("BlockRealize", "SBlockRealize"):
        trips = math.prod(loop.extent for loop in loops)
        for buffer in stmt.block.alloc_buffers:
            found.append(_allocation(buffer, trips, tasks))
        _visit(stmt.block.body, loops, tasks, found)
    elif kind == "IfThenElse":
        for part in (stmt.then_case, stmt.else_case):
            if part is not None:
                _visit(part, loops, tasks, found)
    elif hasattr(stmt, "body"):
        _visit(stmt.body, loops, tasks, found)


def _allocation(buffer: Buffer, trips: int, tasks: int) -> Allocation:
    shape = tuple(int(e) for e in buffer.shape)
    return Allocation(str(buffer.name), str(buffer.dtype), shape, scope_of(buffer), trips, tasks)
