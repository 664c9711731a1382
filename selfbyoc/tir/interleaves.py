"""Vectors that are stored a stride apart, one after the other into the gaps: shuffled and stored
whole.

    out[ramp(at, 2, 16)] = a         out[ramp(at, 1, 16)] = shuffle(a, b; 0, 16, 1, 17, ...)
    out[ramp(at + 1, 2, 16)] = b     out[ramp(at + 16, 1, 16)] = shuffle(a, b; 8, 24, 9, 25, ...)

A transposed convolution writes its phases so, and LLVM takes each vector apart to store it.
"""

from __future__ import annotations

from ..tvm import Analyzer, dtype_of, region_buffer, tir, walk
from ..tvm.rewrite import map_sequences, sequence
from ..tvm.types import Buffer, PrimExpr, PrimFunc, Stmt
from ..tvm.vectors import with_vectors

MOST = 4  # vectors in one shuffle; of more LLVM makes long chains


def with_interleaves(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc with such stores as whole vectors."""
    return map_sequences(func, _shuffled)


def _shuffled(node: Stmt) -> Stmt:
    stmts, done, at = list(node.seq), [], 0
    while at < len(stmts):
        group = _group(stmts[at:])
        done.append(_whole(group) if group else stmts[at])
        at += max(1, len(group))
    return node if len(done) == len(stmts) else sequence(done)


def _group(stmts: list[Stmt]) -> list[Stmt]:
    """The stores that fill each other's gaps, from the first of these statements on."""
    ramp = _strided(stmts[0])
    stride = 0 if ramp is None else int(ramp.stride)
    if ramp is None or not 2 <= stride <= min(MOST, len(stmts)):
        return []
    found = stmts[:stride]
    for n, store in enumerate(found):
        other = _strided(store)
        alike = other is not None and (int(other.stride), int(other.lanes)) == (
            stride, int(ramp.lanes),
        )  # fmt: skip
        if not alike or not store.buffer.same_as(found[0].buffer):
            return []
        if not _is_apart(other.base, ramp.base, n) or _reads(store.value, store.buffer):
            return []
    return found


def _strided(stmt: Stmt) -> PrimExpr:
    """The index of a store of a vector whose lanes lie apart."""
    if type(stmt).__name__ != "BufferStore" or len(stmt.indices) != 1:
        return None
    (index,) = stmt.indices
    is_ramp = isinstance(index, tir.Ramp) and isinstance(index.stride, tir.IntImm)
    return index if is_ramp and isinstance(index.lanes, (int, tir.IntImm)) else None


def _is_apart(later: PrimExpr, first: PrimExpr, by: int) -> bool:
    difference = Analyzer().simplify(later - first)
    return isinstance(difference, tir.IntImm) and int(difference) == by


def _reads(value: PrimExpr, buffer: Buffer) -> bool:
    found: list[bool] = []

    def visit(node: PrimExpr) -> None:
        found.append(bool(region_buffer(node).same_as(buffer)))

    walk(value, visit, "BufferLoad", "TensorLoad")
    return any(found)


def _whole(group: list[Stmt]) -> Stmt:
    """The same elements as stores of neighbours."""
    ramp = _strided(group[0])
    lanes, phases = int(ramp.lanes), len(group)
    named = [(tir.Var(f"phase{n}", dtype_of(s.value)), s.value) for n, s in enumerate(group)]
    made = []
    for part in range(phases):
        at = range(part * lanes, (part + 1) * lanes)
        order = [tir.const(i % phases * lanes + i // phases, "int32") for i in at]
        one = tir.const(1, dtype_of(ramp.base))
        index = tir.Ramp(ramp.base + part * lanes, one, lanes)
        value = tir.Shuffle([var for var, _ in named], order)
        made.append(tir.BufferStore(group[0].buffer, value, [index]))
    return with_vectors(named, sequence(made))
