"""Memory on the stack, under one name on both generations."""

from __future__ import annotations

from collections.abc import Callable

from . import GENERATION, tir
from .rewrite import sequence
from .types import Buffer, PrimFunc, Stmt

if GENERATION == "relax":
    import tvm_ffi

# TVM's own annotation of an allocation: no call of the runtime.
ON_STACK = "disable_lower_builtin"


def on_stack(buffer: Buffer, body: Stmt) -> Stmt:
    """A lowered statement in which a buffer is, on the stack whatever its size."""
    how, yes = {ON_STACK: tir.const(1, "bool")}, tir.const(1, "bool")
    if GENERATION == "relax":
        return sequence([tir.AllocBuffer(buffer, how), body])
    declared = tir.DeclBuffer(buffer, body)
    return tir.Allocate(buffer.data, buffer.dtype, buffer.shape, yes, declared, how)


def with_annotation(func: PrimFunc, name: str, wanted: Callable[..., bool]) -> PrimFunc:
    """A lowered PrimFunc with an annotation, true, on each allocation that is `wanted(scope, dtype,
    extents)`.
    """
    yes = tir.const(1, "bool")

    def of_relax(node: Stmt) -> Stmt:
        buffer = node.buffer
        if not wanted(buffer.scope(), buffer.dtype, buffer.shape):
            return node
        return tir.AllocBuffer(buffer, {**(node.annotations or {}), name: yes})

    def of_relay(node: Stmt) -> Stmt:
        scope = node.buffer_var.type_annotation.storage_scope
        if not wanted(scope, node.dtype, node.extents):
            return node
        new = {**dict(node.annotations), name: yes}
        return tir.Allocate(
            node.buffer_var, node.dtype, node.extents, node.condition, node.body, new
        )

    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.AllocBuffer, of_relax),))
    return func.with_body(
        tir.stmt_functor.ir_transform(func.body, None, of_relay, ["tir.Allocate"])
    )
