"""What TVM's reductions start with: not the largest and the least number of a dtype, but infinity;
and the first place, not one before it.

Both generations start `max` with -3.4e38, so that of nothing but -inf it is that, and of nothing at
all; and where the largest is with place -1 of that value, which then is the answer.
"""

from __future__ import annotations

from typing import Any

from . import TensorLoad, dtype_of, region_buffer, tir, walk
from .rewrite import with_nodes
from .types import Buffer, PrimExpr, PrimFunc, PrimVar, Stmt

_WITH_INFINITY = ("float16", "bfloat16", "float32", "float64")


def lowest(dtype: str) -> PrimExpr:
    """What is no more than any number."""
    is_known = dtype in _WITH_INFINITY
    return tir.const(float("-inf"), dtype) if is_known else tir.min_value(dtype)


def with_true_starts(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose largest and smallest elements start with infinity, and whose places of such
    with 0: all elements of a row may be what they start with, and then the first one is it.
    """
    stores: list[Any] = []
    named: list[tuple[Any, Any]] = []
    walk(func.body, stores.append, "BufferStore")
    walk(func.body, lambda node: named.append((node.var, node.value)), "Let", "LetStmt", "Bind")
    values = [(s.buffer, _named(s.value, named)) for s in stores]
    extremes = [b for b, value in values if _is_extreme(b, value)]
    places = [b for b, value in values if _is_place(b, value, extremes)]
    if not extremes:
        return func

    def changed(store: Stmt) -> Stmt:
        new = _infinity(store.value) if _is_in(store.buffer, extremes) else None
        if _is_in(store.buffer, places) and _is_number(store.value, -1):
            new = tir.const(0, dtype_of(store.value))
        return store if new is None else tir.BufferStore(store.buffer, new, store.indices)

    return with_nodes(func, lambda load: load, changed, lambda block: block)


def _named(value: PrimExpr, named: list[tuple[PrimVar, PrimExpr]]) -> PrimExpr:
    """What a name stands for."""
    return next((v for var, v in named if isinstance(value, tir.Var) and var.same_as(value)), value)


def _is_extreme(buffer: Buffer, value: PrimExpr) -> bool:
    """Whether a value keeps the larger, or the smaller, of a buffer's own and another one."""
    if isinstance(value, (tir.Max, tir.Min)):
        return _reads(value.a, buffer) or _reads(value.b, buffer)
    return _is_kept(buffer, value) and any(_reads(x, buffer) for x in _loads(value.condition))


def _is_place(buffer: Buffer, value: PrimExpr, extremes: list[Buffer]) -> bool:
    """Whether a value keeps a place, by what is compared beside it."""
    read = (
        [region_buffer(load) for load in _loads(value.condition)] if _is_kept(buffer, value) else []
    )
    return any(_is_in(other, extremes) for other in read if not other.same_as(buffer))


def _is_kept(buffer: Buffer, value: PrimExpr) -> bool:
    return isinstance(value, tir.Select) and _reads(value.true_value, buffer)


def _loads(expr: PrimExpr) -> list[PrimExpr]:
    found: list[Any] = []
    walk(expr, found.append, "BufferLoad", "TensorLoad")
    return found


def _reads(expr: PrimExpr, buffer: Buffer) -> bool:
    return isinstance(expr, TensorLoad) and region_buffer(expr).same_as(buffer)


def _is_in(buffer: Buffer, buffers: list[Buffer]) -> bool:
    return any(buffer.same_as(other) for other in buffers)


def _infinity(value: PrimExpr) -> PrimExpr:
    """In place of the least or the largest number of a dtype; None for anything else."""
    if not isinstance(value, tir.FloatImm) or dtype_of(value) not in _WITH_INFINITY:
        return None
    dtype, number = dtype_of(value), float(value.value)
    for extreme, sign in ((tir.min_value(dtype), "-"), (tir.max_value(dtype), "+")):
        if number == float(extreme.value):
            return tir.const(float(f"{sign}inf"), dtype)
    return None


def _is_number(value: PrimExpr, number: int) -> bool:
    return isinstance(value, tir.IntImm) and int(value.value) == number
