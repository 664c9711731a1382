"""Sizes of 0: what a kernel of symbolic sizes does where a tensor has no elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tvm import Analyzer, param_buffers, region_buffer, tir, walk
from ..._tvm_rewrite import map_loops, substitute
from .learn import Learnt


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

    walk(func.body, written.append, "BufferStore")
    params = enumerate(param_buffers(func))
    return [place for place, p in params if any(p.same_as(node.buffer) for node in written)]


def is_right_at_zero(learnt: Learnt, symbol: str) -> bool:
    """Whether a kernel, where this size is 0, leaves alone what has no elements then: whatever
    reads or writes that is in a loop of no turns.
    """
    sizes = {**learnt.examples[0].sizes, symbol: 0}
    nothing = tir.Evaluate(tir.IntImm("int32", 0))

    def kept(loop: Any) -> Any:
        return nothing if isinstance(loop.extent, tir.IntImm) and int(loop.extent) <= 0 else loop

    accesses: list[Any] = []

    body = map_loops(learnt.at(sizes), kept).body
    walk(body, accesses.append, "BufferStore", "BufferLoad", "TensorLoad")
    return all(int(extent) > 0 for node in accesses for extent in region_buffer(node).shape)
