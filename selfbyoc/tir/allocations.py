"""Memory of constant size, where a symbolic size bounds it."""

from __future__ import annotations

from typing import Any

from ..tvm import GENERATION, Analyzer, scope_of, storage_passes, tir, tvm, walk
from ..tvm.predicates import tested_again, without_tests
from ..tvm.symbolic import symbols, with_shapes
from ..tvm.types import PrimExpr, PrimFunc, Stmt
from .tails import with_tails

MOST = 1 << 16  # elements
_NO_BOUND = (1 << 31) - 1  # TVM's word for it


def with_constant_allocations(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc whose buffers of min(size, 4) rows have 4: only memory of a constant size
    becomes registers, or lies on the stack.
    """
    return with_shapes(func, _constant)


def _constant(extent: PrimExpr) -> PrimExpr:
    """The most that an extent can be, where that is not too much; else the extent."""
    if isinstance(extent, (int, tir.IntImm)):
        return extent
    most = int(Analyzer().const_int_bound(extent).max_value)
    return tir.IntImm("int32", most) if most <= MOST else extent


def placed(func: PrimFunc) -> PrimFunc:
    """A scheduled PrimFunc with its buffers where they are needed, and of constant size where that
    is bounded: TVM's own pipeline cannot lower others.
    """
    return with_tails(with_constant_allocations(_at_their_loops(func)))


def has_open_registers(func: PrimFunc) -> bool:
    """Whether a scheduled PrimFunc keeps in `local` memory what a symbolic size counts, or has no
    bound that TVM sees: no such is in registers.
    """
    extents: list[Any] = []

    def visit(block: Stmt) -> None:
        local = (buffer for buffer in block.alloc_buffers if scope_of(buffer) == "local")
        extents.extend(extent for buffer in local for extent in buffer.shape)

    walk(_at_their_loops(func).body, visit, "Block", "SBlock")
    known = (_constant(extent) for extent in extents)
    return not all(isinstance(each, (int, tir.IntImm)) and int(each) <= MOST for each in known)


def bounded(func: PrimFunc) -> PrimFunc:
    """A finished PrimFunc as it is, or `placed` where TVM's pipeline would find no bound of memory
    that has one.
    """
    if GENERATION == "relay" or not symbols(func):
        return func
    if not any(map(_is_unbounded, _extents(_stored(func)))):
        return func
    return placed(func)


def _is_unbounded(extent: PrimExpr) -> bool:
    return isinstance(extent, tir.IntImm) and int(extent) == _NO_BOUND


def _extents(func: PrimFunc) -> list[PrimExpr]:
    """Of the buffers that its blocks allocate."""
    found: list[Any] = []

    def visit(block: Stmt) -> None:
        found.extend(extent for buffer in block.alloc_buffers for extent in buffer.shape)

    walk(func.body, visit, "Block", "SBlock")
    return found


def _at_their_loops(func: PrimFunc) -> PrimFunc:
    if GENERATION == "relay":
        return _stored(func)
    return tested_again(_stored(without_tests(func)))


def _stored(func: PrimFunc) -> PrimFunc:
    return tvm.transform.Sequential(storage_passes())(tvm.IRModule({"main": func}))["main"]
