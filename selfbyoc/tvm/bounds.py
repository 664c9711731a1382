"""What asks TVM about bounds, by each generation's names: maps of iterations, and the checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import GENERATION, tir, tvm
from .rewrite import map_loops
from .types import Attr, Buffer, PrimExpr, PrimFunc, Range, Stmt

if GENERATION == "relax":
    import tvm_ffi
    from tvm import s_tir

iter_affine_map = (tvm.sym if hasattr(tvm, "sym") else tvm.arith).iter_affine_map  # 0.27: sym


def contiguous(
    index: PrimExpr, ranges: Mapping[PrimExpr, Range], condition: PrimExpr
) -> tuple[int, int] | None:
    """First element and number of them, if TVM proves that an index takes each of some neighbours
    exactly once over the ranges of its variables; else None.
    """
    bijective = iter_affine_map.IterMapLevel.Bijective
    try:
        found = iter_affine_map.detect_iter_map([index], ranges, condition, bijective)
    except Exception:  # 0.17 raises where it finds a condition that it cannot read
        return None
    sums = list(found.indices if hasattr(found, "indices") else found)
    if not sums or len(sums[0].args) > 1:
        return None
    base = getattr(sums[0].base, "value", None)
    parts = [
        (getattr(p.scale, "value", None), getattr(p.extent, "value", None)) for p in sums[0].args
    ]
    scale, extent = parts[0] if parts else (1, 1)
    if base is None or extent is None or scale != 1:
        return None
    return int(base), int(extent)


def with_poison(func: PrimFunc, sign: int) -> PrimFunc:
    """A lowered PrimFunc that fills each workspace before its first use with large numbers of a
    sign. (A maximum would drop a NaN.)
    """
    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.SeqStmt, lambda node: _poisoned(node, sign)),))

    def filled(node: Stmt) -> Stmt:
        buffer = tir.decl_buffer(
            node.extents, node.dtype, "poisoned", data=node.buffer_var,
            scope=node.buffer_var.type_annotation.storage_scope,
        )  # fmt: skip
        body = tir.SeqStmt([_fill(buffer, sign), node.body])
        return tir.Allocate(
            node.buffer_var, node.dtype, node.extents, node.condition, body, dict(node.annotations)
        )

    body = tir.stmt_functor.ir_transform(func.body, None, filled, ["tir.Allocate"])
    return func.with_body(body)


def _poisoned(node: Stmt, sign: int) -> Stmt:
    stmts: list[Any] = []
    for stmt in node.seq:
        stmts.append(stmt)
        if type(stmt).__name__ == "AllocBuffer":
            stmts.append(_fill(stmt.buffer, sign))
    return tir.SeqStmt(stmts)


def _fill(buffer: Buffer, sign: int) -> Stmt:
    """A loop that fills a flat buffer."""
    dtype = str(buffer.dtype)
    value: Any = 0x55 if sign > 0 else 0x2A if dtype.startswith("uint") else -0x55
    if dtype.startswith(("float", "bfloat")):
        value = sign * (6e4 if dtype.startswith("float16") else 1e30)
    if dtype.startswith("bool"):
        value = int(sign > 0)
    var = tir.Var("poison", "int32")
    store = tir.BufferStore(buffer, tir.const(value, dtype), [var])
    (extent,) = buffer.shape
    return tir.For(var, tir.const(0, "int32"), tir.const(int(extent), "int32"), 0, store)


def with_bound_checks(func: PrimFunc, buffers: Sequence[tuple[Buffer, int]]) -> PrimFunc:
    """A lowered PrimFunc as TVM's bound checker makes it: `buffers` and their elements are what it
    is to check. By itself it checks nothing: nobody in either TVM says what the extents are.
    """
    prefix = "tir" if GENERATION == "relay" else "tirx"
    body = map_loops(func, _not_unrolled).body
    for buffer, elements in buffers:
        # Of whatever type; 0.26 refuses a pointer as the value of an attribute.
        extents = tir.call_intrin("int32", f"{prefix}.tvm_tuple", tir.const(elements, "int32"))
        body = tir.AttrStmt(memory_of(buffer), "buffer_bound", extents, body)
    passes = s_tir.transform if GENERATION == "relax" else tir.transform
    mod = tvm.IRModule({"main": func.with_body(body)})
    return passes.InstrumentBoundCheckers()(mod)["main"]


def memory_of(buffer: Buffer) -> PrimExpr:
    """What TVM knows a buffer's memory by: in 0.17 the variable of its address."""
    return buffer.data if GENERATION == "relay" else buffer


def _not_unrolled(loop: Stmt) -> Stmt:
    serial, unrolled = 0, 3  # ForKind
    if int(loop.kind) != unrolled:
        return loop
    return tir.For(loop.loop_var, loop.min, loop.extent, serial, loop.body)


def checker_config() -> dict[str, Attr]:
    """Options of a PassContext for TVM's bound checker: loops of vectors stay loops of elements,
    none is unrolled (every store grows by an assertion), and assertions become code.
    """
    prefix = "tir" if GENERATION == "relay" else "tirx"
    return {
        f"{prefix}.disable_vectorize": True,
        f"{prefix}.disable_assert": False,
        f"{prefix}.UnrollLoop": {"explicit_unroll": False},
    }
