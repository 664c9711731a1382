"""Integers of 32 bits wrap around, as in PyTorch, NumPy and ONNX Runtime.

TVM tells LLVM that no sum or product of them overflows (0.17 and 0.27), and LLVM then computes
`int64(a * a)` in 64 bits, or takes a square for positive. Computed in 64 bits and cut, nothing
overflows; LLVM makes the one instruction of 32 bits of it again.
"""

from __future__ import annotations

from typing import Any

from . import TensorLoad, dtype_of, region_buffer, tir, walk
from .indices import is_data, named_by_data
from .rewrite import mapped
from .types import PrimExpr, PrimFunc, Stmt

_WIDER = {"int32": "int64", "uint32": "uint64"}
_KINDS = ("Add", "Sub", "Mul")


def with_wrapping(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose sums, differences and products of 32-bit integers that it reads wrap around;
    but for those that a reduction keeps, which nothing widens.
    """
    named = named_by_data(func)
    kept: list[Any] = []
    found: list[bool] = []
    loops: list[Any] = []
    walk(func.body, loops.append, "While")
    if loops:  # TVM counts boxes and places in them; 0.17 selects too few boxes with these casts
        return func

    def store(node: Stmt) -> None:
        if any(_reads(part, [node.buffer]) for part in _operands(node.value)):
            kept.append(node.buffer)

    def overflows(node: PrimExpr) -> bool:
        if dtype_of(node) not in _WIDER or not is_data(node, named):
            return False
        return not any(_reads(part, kept) for part in _operands(node))

    def changed(node: PrimExpr) -> PrimExpr:
        return _wrapped(node) if overflows(node) else node

    walk(func.body, store, "BufferStore")
    walk(func.body, lambda node: found.append(overflows(node)), *_KINDS)
    if any(found):
        for kind in _KINDS:
            func = mapped(func, kind, changed)
    return func


def _operands(expr: PrimExpr) -> list[PrimExpr]:
    return [expr.a, expr.b] if type(expr).__name__ in _KINDS else []


def _reads(expr: PrimExpr, buffers: list[Any]) -> bool:
    return isinstance(expr, TensorLoad) and any(region_buffer(expr).same_as(b) for b in buffers)


def _wrapped(node: PrimExpr) -> PrimExpr:
    dtype = dtype_of(node)
    a, b = (tir.Cast(_WIDER[dtype], part) for part in (node.a, node.b))
    return tir.Cast(dtype, type(node)(a, b))
