"""The loops of a function, each after those around it."""

from __future__ import annotations

from collections.abc import Iterator

from ..tvm.types import Stmt


def loop_nests(stmt: Stmt, around: tuple[Stmt, ...] = ()) -> Iterator[tuple[Stmt, ...]]:
    """Every loop, after those around it."""
    if type(stmt).__name__ == "For":
        around = (*around, stmt)
        yield around
    for child in _inner(stmt):
        yield from loop_nests(child, around)


def _inner(stmt: Stmt) -> list[Stmt]:
    """The statements in a statement. To ask TVM 0.17 for what a node has not takes it 50 us."""
    kind = type(stmt).__name__
    if kind in ("BufferStore", "Evaluate"):
        return []
    if kind == "SeqStmt":
        return list(stmt.seq)
    if kind == "IfThenElse":
        return [s for s in (stmt.then_case, stmt.else_case) if s is not None]
    if kind in ("BlockRealize", "SBlockRealize"):
        return [stmt.block]
    return [stmt.body] if hasattr(stmt, "body") else []
