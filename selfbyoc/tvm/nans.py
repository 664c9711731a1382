"""NaN in, NaN out: the larger and the smaller of two floats as IEEE 754-2019's maximum and minimum.

TVM's Max and Min are a compare and a select: where an operand is NaN they give the second one (0.17
and 0.27). So a limit that is a number goes first, which costs nothing. Of two values the first one
is tested, and the instruction that takes the larger one is masked by that: two instructions of
AVX-512 for one. A reduction tests what comes in, so that what it waits for stays one instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import TensorLoad, dtype_of, region_buffer, tir, walk
from .rewrite import mapped
from .types import Buffer, PrimExpr, PrimFunc, Stmt

# Of a block, by an attribute of its compute: a NaN that it drops reaches the result by another way.
ANY_NAN = {"tefuse.any_nan": 1}
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_KINDS = ("Max", "Min")


def with_nans(func: PrimFunc) -> PrimFunc:
    """A PrimFunc, not lowered yet, whose Max and Min of floats are NaN where an operand is."""
    if not _has_some(func):
        return func
    kept = _Kept(func)

    def changed(node: PrimExpr) -> PrimExpr:
        return _changed(node, kept)

    for kind in _KINDS:
        func = mapped(func, kind, changed)
    return func


def _has_some(func: PrimFunc) -> bool:
    found: list[bool] = []
    walk(func.body, lambda node: found.append(dtype_of(node) in _FLOATS), *_KINDS)
    return any(found)


def _has_bfloat16(func: PrimFunc) -> bool:
    """Beside which 0.27's passes for it end the process at a Let."""
    found: list[str] = []
    walk(func.body, lambda node: found.append(dtype_of(node)), "Cast", "BufferLoad", "TensorLoad")
    return any(dtype.startswith("bfloat16") for dtype in found)


class _Kept:
    """What is known of a function: the buffers that keep the larger or smaller of their own and
    another value, those of which any NaN may be dropped, and whether values may have names.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.is_named = not _has_bfloat16(func)
        self.buffers: list[Any] = []
        self.free: list[Any] = []
        walk(func.body, self._store, "BufferStore")
        walk(func.body, self._block, "Block", "SBlock")

    def _store(self, store: Stmt) -> None:
        value = store.value
        if type(value).__name__ in _KINDS and any(
            _reads(operand, [store.buffer]) for operand in (value.a, value.b)
        ):
            self.buffers.append(store.buffer)

    def _block(self, block: Stmt) -> None:
        if any(name in block.annotations for name in ANY_NAN):
            self.free += [region_buffer(region) for region in block.writes]


def _changed(node: PrimExpr, kept: _Kept) -> PrimExpr:
    a, b, kind = node.a, node.b, type(node)
    if dtype_of(node) not in _FLOATS or _is_number(a):
        return node
    if _is_number(b):
        return kind(b, a)
    if any(_reads(operand, kept.free) for operand in (a, b)):
        return node
    if _reads(a, kept.buffers) or not isinstance(a, TensorLoad):
        a, b = b, a
    return _of_two(kind, a, b, kept.is_named)


def _of_two(kind: Any, a: PrimExpr, b: PrimExpr, is_named: bool) -> PrimExpr:
    """Named first: TVM makes a branch of a Select that reads memory, which LLVM 10 (0.17) gets
    wrong in vectors. Not `a == a`, which 0.27 simplifies.
    """
    if not is_named:
        return _chosen(kind, a, b)
    one, other = tir.Var("one", dtype_of(a)), tir.Var("other", dtype_of(b))
    return tir.Let(one, a, tir.Let(other, b, _chosen(kind, one, other)))


def _chosen(kind: Any, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    compared = tir.Cast("float32", a) if dtype_of(a) == "bfloat16" else a
    is_number = compared <= tir.const(float("inf"), dtype_of(compared))
    return tir.Select(is_number, kind(a, b), a)


def _is_number(expr: PrimExpr) -> bool:
    """Whether it is no NaN: a constant, or what was an integer."""
    if isinstance(expr, tir.Broadcast):
        return _is_number(expr.value)
    if isinstance(expr, tir.Cast):
        return "float" not in dtype_of(expr.value)
    return isinstance(expr, tir.FloatImm) and float(expr.value) == float(expr.value)


def _reads(expr: PrimExpr, buffers: Sequence[Buffer]) -> bool:
    return isinstance(expr, TensorLoad) and any(region_buffer(expr).same_as(b) for b in buffers)
