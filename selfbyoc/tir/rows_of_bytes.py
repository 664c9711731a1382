"""Bytes that become words along a row: loaded together and shuffled apart.

    x[ramp(at, 2, 8)], x[ramp(at + 1, 2, 8)]    row = x[ramp(at, 1, 16)]
                                                shuffle(row; 0, 2, ...), shuffle(row; 1, 3, ...)

LLVM takes bytes that lie apart one by one, two instructions each. Only where one vector of int32 is
made of all that lie between the first and the last: nothing else is read.
"""

from __future__ import annotations

from typing import Any

from ..tvm import Analyzer, dtype_of, region_buffer, tir, walk
from ..tvm.columns import COLUMNS
from ..tvm.rewrite import is_conditional, map_loads_and_calls, mapped
from ..tvm.types import PrimExpr, PrimFunc, Stmt
from .lanes import lanes_of

STRIDES = (2, 4)
BYTES = ("int8", "uint8")
LEAST = 4  # words of a vector


def with_rows_of_bytes(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc with such loads as shuffles."""
    return mapped(func, "BufferStore", _shuffled)


def _shuffled(store: Stmt) -> Stmt:
    if str(dtype_of(store.value)).partition("x")[0] != "int32" or lanes_of(store.value) < LEAST:
        return store
    loads, asks = _loads(store.value)
    starts = None if asks or not loads else _starts(loads)
    if starts is None:
        return store
    first, apart = loads[starts.index(0)], len(loads)

    def changed(node: PrimExpr) -> PrimExpr:
        at = next((n for n, load in zip(starts, loads, strict=True) if _same(load, node)), None)
        return node if at is None else part_of_row(first, at, apart)

    value = map_loads_and_calls(store.value, changed)
    return tir.BufferStore(store.buffer, value, store.indices)


def _loads(value: PrimExpr) -> tuple[list[PrimExpr], bool]:
    """The different strided loads of bytes, and whether one may be left out."""
    found: list[Any] = []
    asks: list[bool] = []

    def visit(node: PrimExpr) -> None:
        if is_conditional(node) or _is_of_columns(node):  # which shuffles by itself
            asks.append(True)
        elif (
            len(found) <= max(STRIDES)
            and _stride(node)
            and not any(_same(node, known) for known in found)
        ):
            found.append(node)

    walk(value, visit, "BufferLoad", "TensorLoad", "Call")
    return found, bool(asks)


def _is_of_columns(node: PrimExpr) -> bool:
    return str(getattr(getattr(node, "op", None), "name", "")).startswith(COLUMNS)


def _stride(node: PrimExpr) -> int:
    """Of a load of bytes that lie so far apart; 0 of anything else."""
    indices: Any = getattr(node, "indices", ())
    if len(indices) != 1 or str(dtype_of(node)).partition("x")[0] not in BYTES:
        return 0
    (ramp,) = indices
    is_apart = isinstance(ramp, tir.Ramp) and isinstance(ramp.stride, tir.IntImm)
    return int(ramp.stride) if is_apart and int(ramp.stride) in STRIDES else 0


def _same(a: PrimExpr, b: PrimExpr) -> bool:
    if not _stride(a) or _stride(a) != _stride(b):
        return False
    alike = region_buffer(a).same_as(region_buffer(b)) and lanes_of(a) == lanes_of(b)
    return alike and _between(a, b) == 0


def _between(a: PrimExpr, b: PrimExpr) -> int | None:
    """Elements from where one begins to where the other does."""
    found = Analyzer().simplify(b.indices[0].base - a.indices[0].base)
    return int(found) if isinstance(found, tir.IntImm) else None


def _starts(loads: list[PrimExpr]) -> list[int] | None:
    """Where each begins in the row that all of them fill; None where they fill none."""
    one, stride = loads[0], _stride(loads[0])
    alike = all(
        _stride(each) == stride
        and lanes_of(each) == lanes_of(one)
        and region_buffer(each).same_as(region_buffer(one))
        for each in loads
    )
    places = [_between(one, each) for each in loads] if alike else [None]
    known = [place for place in places if place is not None]
    if len(known) < len(loads) or sorted(known) != [*range(min(known), min(known) + stride)]:
        return None
    return [place - min(known) for place in known]


def part_of_row(first: PrimExpr, at: int, apart: int) -> PrimExpr:
    """Every so many-th element of the row that begins with a load, from one on."""
    base, lanes = first.indices[0].base, lanes_of(first)
    index = tir.Ramp(base, tir.const(1, dtype_of(base)), apart * lanes)
    row = tir.BufferLoad(region_buffer(first), [index])
    order = [tir.const(at + apart * n, "int32") for n in range(lanes)]
    return tir.Shuffle([row], order)
