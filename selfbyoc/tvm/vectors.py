"""Vectors that later ones are made of, where TVM's own names would cost minutes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from . import dtype_of, tir
from .rewrite import sequence, substitute
from .stack import on_stack
from .types import PrimExpr, PrimVar, Stmt


def with_vectors(named: Sequence[tuple[PrimVar, PrimExpr]], body: Stmt) -> Stmt:
    """A statement where variables stand for vectors; later ones may use earlier ones.

    They are parts of one array on the stack, which LLVM turns into registers. TVM's own
    names (Bind, LetStmt) go into its Analyzer as machine code is made, which puts the value of each
    into all that follow: a square of 16 rows and 64 shuffles took 47 s
    (0.27; docs/makers/tvm-notes.md).
    """
    if not named:
        return body
    kinds = [str(dtype_of(var)).partition("x") for var, _ in named]
    lanes = [int(count) for _, _, count in kinds]
    starts = [0, *itertools.accumulate(lanes)]
    scalar = kinds[0][0]
    array = tir.decl_buffer((starts[-1],), scalar, "rows", scope="local")
    places = {
        var: [tir.Ramp(tir.IntImm("int32", start), 1, count)]
        for (var, _), start, count in zip(named, starts, lanes, strict=False)
    }
    stored = sequence([*(tir.BufferStore(array, value, places[var]) for var, value in named), body])
    loads = {var: tir.BufferLoad(array, at) for var, at in places.items()}
    return on_stack(array, substitute(stored, loads))
