"""Indices that are data stay within what they index, on both generations.

TVM 0.27 and 0.17 compute addresses of whatever they are given: with an index past the end a gather
reads foreign memory, and a scatter writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import GENERATION, TensorLoad, dtype_of, region_buffer, tir, tvm, walk
from .rewrite import with_nodes
from .types import Buffer, PrimExpr, PrimFunc, Stmt, TirNode

# The mode of a `take` that was given none: an index out of range is an error, or anything.
USUAL_MODE = "clip" if GENERATION == "relay" else "fast"
_PARTS = ("a", "b", "value", "base", "condition", "true_value", "false_value")


def within_buffers(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose accesses at places that it reads somewhere take the nearest one that is
    there.
    """
    named = named_by_data(func)

    def load(node: PrimExpr) -> PrimExpr:
        found = _bounded(node, region_buffer(node), named)
        return node if found is None else tir.BufferLoad(region_buffer(node), found)

    def store(node: Stmt) -> Stmt:
        found = _bounded(node, node.buffer, named)
        return node if found is None else tir.BufferStore(node.buffer, node.value, found)

    return with_nodes(func, load, store, lambda block: block)


def _bounded(node: TirNode, buffer: Buffer, named: set[PrimExpr]) -> list[PrimExpr] | None:
    """The indices of an access, those that are data within the buffer; None where none is."""
    moves = [is_data(index, named) for index in node.indices]
    if not any(moves):
        return None
    both = zip(node.indices, buffer.shape, moves, strict=True)
    return [_clipped(index, extent) if data else index for index, extent, data in both]


def _clipped(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    dtype = dtype_of(index)
    last = tir.Cast(dtype, extent) if dtype_of(extent) != dtype else extent
    return tir.Max(tir.Min(index, last - tir.const(1, dtype)), tir.const(0, dtype))


def is_data(index: PrimExpr, named: set[PrimExpr]) -> bool:
    """Whether an expression reads something, or one of the variables that stand for it."""
    return _has(index, lambda part: isinstance(part, TensorLoad) or part in named)


def has_any(expr: PrimExpr, variables: set[PrimExpr]) -> bool:
    """Whether an expression has one of these variables."""
    return _has(expr, variables.__contains__)


def _has(expr: PrimExpr, wanted: Callable[[PrimExpr], bool]) -> bool:
    # By hand: with a structural walk in here, within a structural map, 0.27 ended the process
    # ("unaligned fastbin chunk detected"); a small program does not show it.
    if wanted(expr):
        return True
    inner = [getattr(expr, name) for name in _PARTS if hasattr(expr, name)]
    inner += [*getattr(expr, "args", ())]
    return any(_has(part, wanted) for part in inner if isinstance(part, tvm.runtime.Object))


def named_by_data(func: PrimFunc) -> set[PrimExpr]:
    """Variables that stand for something read."""
    named: set[Any] = set()

    def visit(node: Stmt) -> None:
        if is_data(node.value, named):
            named.add(node.var)

    walk(func.body, visit, "Let", "LetStmt", "Bind")
    return named
