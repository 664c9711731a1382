"""Vectors of no whole number of registers as whole ones, of which the last one starts earlier.

    for lane in vectorized(14): y[lane] = ...   for lane in vectorized(8): y[lane] = ...
                                                for lane in vectorized(8): y[6 + lane] = ...

What is computed twice is the same where nothing that it is made of has been overwritten meanwhile:
of a result of the function. Memory between its stages TVM may share (StorageRewrite), element by
element. LLVM makes 8, 4 and 2 of such a vector, and what transposes squares in registers
(strided_vectors.py) takes whole ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..machine import machine
from ..tvm import BlockRealize, dtype_of, param_buffers, region_buffer, tir
from ..tvm.rewrite import map_loops, sequence, substitute
from ..tvm.types import Buffer, PrimFunc, Stmt, Target


def with_overlaps(func: PrimFunc, target: Target) -> PrimFunc:
    """A finished PrimFunc whose vectors are so."""
    lanes, own = machine(target).lanes("float32"), param_buffers(func)
    return map_loops(func, lambda loop: _whole(loop, lanes, own))


def _whole(loop: Stmt, lanes: int, own: Sequence[Buffer]) -> Stmt:
    if loop.kind != tir.ForKind.VECTORIZED or not isinstance(loop.extent, tir.IntImm):
        return loop
    extent = int(loop.extent)
    if extent <= lanes or extent % lanes == 0 or not _gives(loop.body, own):
        return loop
    starts = [*range(0, extent - lanes, lanes), extent - lanes]
    return sequence([_from(loop, start, lanes) for start in starts])


def _from(loop: Stmt, start: int, lanes: int) -> Stmt:
    lane = tir.Var(str(loop.loop_var.name), dtype_of(loop.loop_var))
    body = substitute(loop.body, {loop.loop_var: lane + start if start else lane})
    return tir.For(lane, loop.min, tir.const(lanes, dtype_of(loop.extent)), loop.kind, body)


def _gives(body: Stmt, own: Sequence[Buffer]) -> bool:
    """Whether it is a block that writes parameters of the function, and reads none of these."""
    if not isinstance(body, BlockRealize) or body.block.init is not None:
        return False
    written = [region_buffer(region) for region in body.block.writes]
    read = [region_buffer(region) for region in body.block.reads]
    if any(r.same_as(w) for r in read for w in written):
        return False
    return all(any(w.same_as(buffer) for buffer in own) for w in written)
