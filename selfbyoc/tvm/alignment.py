"""Kernels for arguments of any alignment, on both generations."""

from __future__ import annotations

from typing import Any

from . import GENERATION, SBlock, tir, tvm
from .types import Buffer, PrimFunc, Stmt

if GENERATION == "relax":
    import tvm_ffi


def any_alignment(func: PrimFunc) -> PrimFunc:
    """A PrimFunc that takes arguments of any alignment: 0.27 passes NumPy arrays as they lie in
    memory.

    Its code assumes 64 bytes without a check (vmovaps, SIGSEGV). Told that an element is all there
    is, LLVM emits unaligned moves, which cost nothing on data that is aligned. For 0.17 see
    lowered_for_any_alignment.
    """
    if GENERATION == "relay":
        return func
    # What an intrinsic calls a part of an argument promises no more than the argument.
    known = [*func.params, *_parts(func)]
    new = {
        p: tvm.ir.Var(p.name, _element_aligned(p.ty))
        for p in known
        if hasattr(p.ty, "data_alignment")
    }
    return tvm_ffi.structural_map(func, (tvm.ir.Var, lambda var: new.get(var, var)))


def _parts(func: PrimFunc) -> list[Buffer]:
    """The buffers that blocks declare as parts of others (match_buffer)."""
    found: list[Any] = []

    def visit(node: Stmt) -> None:
        found.extend(part.buffer for part in node.match_buffers)

    tvm_ffi.structural_walk(func, ((SBlock, visit),), order="post")
    return found


def lowered_for_any_alignment(func: PrimFunc) -> PrimFunc:
    """The same for 0.17, of a lowered PrimFunc: its body no longer refers to the buffers of its
    arguments, which can therefore be replaced.

    Graph executor and VM allocate at 64 bytes; weights in a library of the AOT executor lie at 16.
    """
    if GENERATION == "relax":
        return func
    buffers = {param: _unaligned(buffer) for param, buffer in func.buffer_map.items()}
    return tir.PrimFunc(func.params, func.body, func.ret_type, buffers, func.attrs)


def _unaligned(buffer: Buffer) -> Buffer:
    """A buffer of 0.17 in the same memory, of which only an element's alignment is known."""
    return tir.decl_buffer(
        buffer.shape, buffer.dtype, buffer.name, data=buffer.data, strides=buffer.strides,
        elem_offset=buffer.elem_offset, scope=buffer.scope(), offset_factor=buffer.offset_factor,
        data_alignment=max(1, tvm.DataType(buffer.dtype).bits // 8),
    )  # fmt: skip


def _element_aligned(ty: Buffer) -> Buffer:
    bits = int("".join(c for c in str(ty.dtype) if c.isdigit()) or 8)
    return type(ty)(
        ty.dtype, ty.storage_scope, ty.shape, ty.strides, ty.elem_offset, max(1, bits // 8),
        ty.offset_factor, ty.layout, ty.allocated_addr,
    )  # fmt: skip
