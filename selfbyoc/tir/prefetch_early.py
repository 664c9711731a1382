"""Software prefetch of what a tile reads after its sums, such as a residual: prefetched before
them.

These reads come all at once, from lines that nothing prefetched: the core waits for them where it
could have added meanwhile. A schedule says for which loop and buffers, by `prefetch_residual`.
"""

from __future__ import annotations

import itertools
from typing import Any

from ..tvm import dtype_of, param_buffers, region_buffer, tir, walk
from ..tvm.rewrite import map_loops, prefetch_op, substitute, variables_in, with_body
from ..tvm.types import Buffer, PrimExpr, PrimFunc, Stmt, TirNode
from .prefetch import LINE

EARLY = "tefuse.prefetch.early"  # an annotation of a loop, with the names of parameters
MOST_LINES = 128  # of one run of the loop; more would push each other out of the queue of reads
VECTORIZED = 2  # tir.ForKind
ACCESSES = ("BufferLoad", "TensorLoad", "BufferStore")


def with_early(func: PrimFunc) -> PrimFunc:
    """A scheduled PrimFunc whose annotated loops begin by asking for what their end reads."""
    params = {str(b.name): b for b in param_buffers(func) if hasattr(b, "shape")}

    def early(loop: Stmt) -> Stmt:
        names = str((loop.annotations or {}).get(EARLY, "")).split()
        lines = [line for name in names if name in params for line in _lines(loop, params[name])]
        return with_body(loop, tir.SeqStmt([*lines, loop.body])) if lines else loop

    return map_loops(func, early)


def _lines(loop: Stmt, buffer: Buffer) -> list[Stmt]:
    """A prefetch of each line that a run of a loop reads or writes of a buffer."""
    index, inner = _read(loop, buffer)
    used = [one for one in inner if any(one.loop_var in variables_in(i) for i in index)]
    places = list(itertools.product(*(_starts(one, buffer) for one in used)))
    if not index or len(places) > MOST_LINES:
        return []
    lines = []
    for place in places:
        new = {
            one.loop_var: tir.const(at, dtype_of(one.loop_var))
            for one, at in zip(used, place, strict=True)
        }
        load = tir.BufferLoad(buffer, [substitute(i, new) for i in index])
        lines.append(tir.Evaluate(prefetch_op(load)))
    return lines


def _read(loop: Stmt, buffer: Buffer) -> tuple[list[PrimExpr], list[Stmt]]:
    """The indices of the first access of a buffer inside a loop, and the loops in there."""
    values: dict[Any, Any] = {}
    inner: list[Any] = []
    found: list[list[Any]] = []

    def visit(node: TirNode) -> None:
        kind = type(node).__name__
        if kind == "For":
            inner.append(node)
        elif kind.endswith("BlockRealize"):
            pairs = zip(node.block.iter_vars, node.iter_values, strict=True)
            values.update((axis.var, value) for axis, value in pairs)
        elif kind in ACCESSES and _buffer(node).same_as(buffer):
            found.append(list(node.indices))

    walk(loop.body, visit)
    index = [substitute(substitute(i, values), values) for i in found[0]] if found else []
    return index, inner


def _buffer(node: TirNode) -> Buffer:
    return node.buffer if type(node).__name__ == "BufferStore" else region_buffer(node)


def _starts(loop: Stmt, buffer: Buffer) -> list[int]:
    """The iterations of a loop that may begin a line: all, or of a vector one each line and the
    last, which may lie in another one.
    """
    extent = int(loop.extent)
    if int(loop.kind) != VECTORIZED:
        return list(range(extent))
    bits = int("".join(c for c in str(buffer.dtype) if c.isdigit()) or 32)
    each = LINE * 8 // bits
    return list(range(0, extent, each)) + ([extent - 1] if extent % each else [])
