"""The weights of a Winograd convolution, transformed and packed ahead of time."""

from __future__ import annotations

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, or_zero
from ...steps.tiles import BLOCK
from ..words import signed, word_of, words_of
from .integers import LEVELS, WORD_DTYPE
from .matrices import matrices, times
from .plan import WinogradPlan


def pack(weight: Tensor, plan: WinogradPlan) -> Tensor:
    """[O, I, r, r] -> G w G^T as [m + r - 1, m + r - 1, O/16, I, 16]; of int32, as integers."""
    out, inner, window, _ = extents(weight)
    _, g, _ = matrices(plan.m, window, weight.dtype)
    size = plan.tiling.size

    def half(e: PrimExpr, o: PrimExpr, i: PrimExpr, x: PrimExpr) -> PrimExpr:
        return times(g, e, lambda y: weight(o, i, y, x))

    columns = te.compute((size, out, inner, window), half, name=f"{weight.op.name}_columns")

    def whole(e: PrimExpr, f: PrimExpr, b: PrimExpr, i: PrimExpr, lane: PrimExpr) -> PrimExpr:
        def value(o: PrimExpr) -> PrimExpr:
            return times(g, f, lambda x: columns(e, tir.Min(o, out - 1), i, x))

        lanes = plan.out_blocks * BLOCK
        return or_zero(b * BLOCK + lane, out, lanes, value, weight.dtype)

    shape = (size, size, plan.out_blocks, inner, BLOCK)
    return te.compute(shape, whole, name=f"{weight.op.name}_packed")


def pack_words(weight: Tensor, plan: WinogradPlan) -> Tensor:
    """[O, I, r, r] of bytes -> integers as `pack` has them, two inputs a word:
    [m + r - 1, m + r - 1, O/16, I/2, 16].
    """
    name = weight.op.name
    levels = te.compute(
        weight.shape, lambda *i: signed(weight(*i), weight.dtype), name=f"{name}_levels"
    )
    levels = pack(levels, plan)
    size, _, out_blocks, inner, lanes = extents(levels)
    each = words_of(inner, LEVELS)

    def word(e: PrimExpr, f: PrimExpr, b: PrimExpr, i: PrimExpr, lane: PrimExpr) -> PrimExpr:
        def level(k: PrimExpr) -> PrimExpr:
            def read(at: PrimExpr) -> PrimExpr:
                return levels(e, f, b, at, lane)

            return or_zero(k, inner, each * LEVELS, read, WORD_DTYPE)

        return word_of([level(i * LEVELS + n) for n in range(LEVELS)])

    shape = (size, size, out_blocks, each, lanes)
    return te.compute(shape, word, name=f"{name}_packed_words")
