"""Barriers that TVM leaves out, around what threads reduce together.

One thread stores a row's sum, and all that have the row read it: `shared[threadIdx.y]`, if rows go
to threads by y. Both TVMs take an index in which the last thread axis occurs for a thread's own
(ThreadSync, 0.17 and 0.27), and put no barrier between: on a GPU others read what was there before
(docs/makers/tvm-notes.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..tvm import is_reduction, tir, walk
from ..tvm.gpu import barrier
from ..tvm.rewrite import map_loops, sequence, with_body
from ..tvm.types import PrimFunc, Stmt, TirNode
from .lanes import found_in


def with_barriers(func: PrimFunc) -> PrimFunc:
    """A scheduled function for a GPU, with a barrier before and after each nest that threads reduce
    in together, among those of one thread block.
    """

    def change(loop: Stmt) -> Stmt:
        if not _tag(loop).startswith("blockIdx"):
            return loop
        return with_body(loop, _separated(loop.body, is_again=False))

    return map_loops(func, change)


def _separated(stmt: Stmt, is_again: bool) -> Stmt:
    """A statement outside of loops over threads: all threads come to it. `is_again`: in a loop."""
    if isinstance(stmt, tir.For) and not _tag(stmt):
        return with_body(stmt, _separated(stmt.body, is_again=True))
    if not isinstance(stmt, tir.SeqStmt):
        return stmt
    nests = [_separated(each, is_again) for each in stmt.seq]
    together = [*map(_reduces_together, nests)]
    return sequence(_with_barriers_between(nests, together, is_again))


def _with_barriers_between(
    nests: list[Stmt], together: list[bool], is_again: bool
) -> Iterator[Stmt]:
    last = len(nests) - 1
    for n, nest in enumerate(nests):
        yield nest
        is_between = any(together[n : n + 2]) if n < last else is_again and any(together)
        if is_between:
            yield barrier()


def _reduces_together(nest: Stmt) -> bool:
    """Whether a nest has a block that reduces along threads."""
    threads, reduced = set(), set()

    def visit(node: TirNode) -> None:
        if isinstance(node, tir.For) and _tag(node).startswith("threadIdx"):
            threads.add(node.loop_var)
        elif type(node).__name__.endswith("BlockRealize"):
            pairs = zip(node.block.iter_vars, node.iter_values, strict=True)
            for value in (value for axis, value in pairs if is_reduction(axis)):
                reduced.update(found_in(value, lambda expr: type(expr).__name__ == "Var"))

    walk(nest, visit)
    return bool(threads & reduced)


def _tag(loop: Stmt) -> str:
    """The thread axis that a loop is bound to, or ''."""
    if not isinstance(loop, tir.For) or loop.thread_binding is None:
        return ""
    return str(loop.thread_binding.thread_tag)
