"""Sizes of 0: what a kernel of symbolic sizes does where a tensor has no elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from ...tvm import Analyzer, param_buffers, region_buffer, tir, walk
from ...tvm.rewrite import map_loops, simplified, substitute
from ...tvm.types import Buffer, PrimExpr, PrimFunc, Stmt
from .learn import Learnt


def is_empty(outputs: Sequence[Buffer]) -> PrimExpr:
    """Whether all of these buffers have no elements, as an expression."""
    each = [_zero_extents(buffer) for buffer in outputs]
    if not each or not all(each):
        return tir.const(0, "bool")
    some = [zeros[0] if len(zeros) == 1 else tir.any(*zeros) for zeros in each]
    return some[0] if len(some) == 1 else tir.all(*some)


def _zero_extents(buffer: Buffer) -> list[PrimExpr]:
    return [extent == 0 for extent in buffer.shape if not isinstance(extent, tir.IntImm)]


def empties(variable: PrimExpr, outputs: Sequence[Buffer]) -> bool:
    """Whether a size of 0 leaves all of these buffers without elements."""
    found = substitute(is_empty(outputs), {variable: tir.IntImm("int32", 0)})
    return bool(Analyzer().can_prove(found))


def demanded(
    variables: Iterable[PrimExpr], outputs: Sequence[Buffer]
) -> list[tuple[PrimExpr, str]]:
    """That sizes for which there is no kernel of 0 are more, if something is to be computed: the
    conditions, and what to say else.
    """
    some = [size for size in variables if not empties(size, outputs)]
    hollow = is_empty(outputs)
    return [(tir.any(size > 0, hollow), f"size {size.name}: expected 1 or more") for size in some]


def outputs_of(func: PrimFunc) -> list[int]:
    """The positions of the parameters that a PrimFunc writes."""
    written: list[Any] = []

    walk(func.body, written.append, "BufferStore")
    params = enumerate(param_buffers(func))
    return [place for place, p in params if any(p.same_as(node.buffer) for node in written)]


def is_right_at_zero(learnt: Learnt, symbol: str) -> bool:
    """Whether a kernel, where this size is 0, leaves alone what has no elements then: whatever
    reads or writes that is in a loop of no turns; and leaves nothing else as the memory was: no
    such loop starts a sum that is read after it, or returned.
    """
    sizes = {**learnt.examples[0].sizes, symbol: 0}
    nothing = tir.Evaluate(tir.IntImm("int32", 0))
    idle: list[Any] = []

    def kept(loop: Stmt) -> Stmt:
        if not (isinstance(loop.extent, tir.IntImm) and int(loop.extent) <= 0):
            return loop
        walk(loop, idle.append, "BufferStore")
        return nothing

    done = map_loops(learnt.at(sizes), kept)
    # Without branches that no turn takes: a concatenation reads nothing of what has no elements.
    with suppress(RuntimeError):  # of TVM's, which divides by the size, as a mean does
        done = simplified(done)
    stores: list[Any] = []
    loads: list[Any] = []
    walk(done.body, stores.append, "BufferStore")
    walk(done.body, loads.append, "BufferLoad", "TensorLoad")
    written = [region_buffer(node) for node in stores]
    params = [b for b in param_buffers(done) if hasattr(b, "shape")]  # not those that are numbers
    read = [*map(region_buffer, loads), *filter(_has_elements, params)]
    if not all(map(_has_elements, [*written, *map(region_buffer, loads)])):
        return False
    forgotten = [b for b in map(region_buffer, idle) if not any(b.same_as(o) for o in written)]
    return not any(b.same_as(other) for b in forgotten for other in read)


def _has_elements(buffer: Buffer) -> bool:
    return all(int(extent) > 0 for extent in buffer.shape)
