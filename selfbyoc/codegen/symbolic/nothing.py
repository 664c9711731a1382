"""Sizes of 0: what a kernel of symbolic sizes does where a tensor has no elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tvm import Analyzer, TensorLoad, param_buffers, region_buffer, tir, walk
from ..._tvm_rewrite import map_loops, substitute


def is_empty(outputs: Sequence[Any]) -> Any:
    """Whether all of these buffers have no elements, as an expression."""
    each = [_zero_extents(buffer) for buffer in outputs]
    if not each or not all(each):
        return tir.const(0, "bool")
    some = [zeros[0] if len(zeros) == 1 else tir.any(*zeros) for zeros in each]
    return some[0] if len(some) == 1 else tir.all(*some)


def _zero_extents(buffer: Any) -> list[Any]:
    return [extent == 0 for extent in buffer.shape if not isinstance(extent, tir.IntImm)]


def empties(variable: Any, outputs: Sequence[Any]) -> bool:
    """Whether a size of 0 leaves all of these buffers without elements."""
    found = substitute(is_empty(outputs), {variable: tir.IntImm("int32", 0)})
    return bool(Analyzer().can_prove(found))


def outputs_of(func: Any) -> list[int]:
    """The positions of the parameters that a PrimFunc writes."""
    written: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tir.BufferStore):
            written.append(node.buffer)

    walk(func.body, visit)
    params = enumerate(param_buffers(func))
    return [place for place, p in params if any(p.same_as(buffer) for buffer in written)]


def is_right_at_zero(func: Any, variable: Any) -> bool:
    """Whether a PrimFunc, where this size is 0, leaves alone what has no elements then: whatever
    reads or writes that is in a loop of no turns.
    """
    analyzer, zero = Analyzer(), tir.IntImm("int32", 0)

    def kept(loop: Any) -> Any:
        turns = analyzer.simplify(loop.extent)
        return tir.Evaluate(zero) if isinstance(turns, tir.IntImm) and int(turns) <= 0 else loop

    left = map_loops(substitute(func, {variable: zero}), kept)
    accesses: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, (tir.BufferStore, TensorLoad)):
            accesses.append(region_buffer(node))

    walk(left.body, visit)
    extents = (analyzer.simplify(extent) for buffer in accesses for extent in buffer.shape)
    return not any(isinstance(extent, tir.IntImm) and int(extent) <= 0 for extent in extents)
