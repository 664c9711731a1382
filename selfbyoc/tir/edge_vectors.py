"""Vectors of a row that end in copies of its last element: whole but for the last one.

    x[min(ramp(at, 1, 16), last)]     x[ramp(at, 1, 16)] if at + 15 <= last else x[min(...)]

TVM loads such vectors lane by lane. (LLVM's masked loads are as fast with AVX-512, and with AVX2
slower than no vectors: softmax of 1536 x 197 takes 127 us and 252, by this branch 127 and 170.)
"""

from __future__ import annotations

from ..tvm import dtype_of, region_buffer, tir
from ..tvm.rewrite import with_nodes
from ..tvm.types import PrimExpr, PrimFunc
from .lanes import lanes_of


def with_ends(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc whose loads are so."""
    return with_nodes(func, _branched, lambda store: store, lambda block: block)


def _branched(load: PrimExpr) -> PrimExpr:
    lanes = lanes_of(load.indices[0]) if len(load.indices) == 1 else 1
    found = _bounded(load.indices[0]) if lanes > 1 else None
    if found is None:
        return load
    first, last = found
    ramp = tir.Ramp(first, tir.const(1, dtype_of(first)), lanes)
    whole = tir.BufferLoad(region_buffer(load), [ramp])
    return tir.if_then_else(first + (lanes - 1) <= last, whole, load)


def _bounded(index: PrimExpr) -> tuple[PrimExpr, PrimExpr] | None:
    """The first element of neighbours, and the last one that there is; None for other indices."""
    kind = type(index).__name__
    if kind not in ("Min", "Add"):
        return None
    for vector, scalar in ((index.a, index.b), (index.b, index.a)):
        if not isinstance(scalar, tir.Broadcast):
            continue
        if kind == "Min" and _is_run(vector):
            return vector.base, scalar.value
        inner = _bounded(vector) if kind == "Add" else None
        if inner is not None:
            return inner[0] + scalar.value, inner[1] + scalar.value
    return None


def _is_run(vector: PrimExpr) -> bool:
    is_ramp = isinstance(vector, tir.Ramp) and isinstance(vector.stride, (int, tir.IntImm))
    return is_ramp and int(vector.stride) == 1
