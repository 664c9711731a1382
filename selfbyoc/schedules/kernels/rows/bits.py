"""Levels of few bits in words of 32, their scales and their zero points, as kernels read them.

What is multiplied of a level is 1 + level / 2^bits, which is made without a conversion: the level
is the first bits of the mantissa, those of the exponent say 1. Scales and zero points are packed
for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....tvm import te, tir
from ....tvm.types import PrimExpr, Tensor
from ...steps.tensors import extents, or_zero
from ...steps.tiles import BLOCK
from .forms import paired_blocks

WORD = 32  # bits
MANTISSA, ONE = 23, 0x3F800000  # of a float32, and its bits of 1.0


def whole_groups(depth: int, group: int) -> int:
    """Whole groups."""
    return -(-depth // group) * group


def fraction(word: PrimExpr, place: PrimExpr, bits: int) -> PrimExpr:
    """1 + level / 2^bits."""
    first = MANTISSA - bits
    left = first - place * bits
    # One of both is a shift by 0, once the loop over a word is unrolled.
    moved = (word << tir.Max(left, 0)) >> tir.Max(-left, 0)
    return tir.reinterpret("float32", (moved & (((1 << bits) - 1) << first)) | ONE)


def pack_levels(levels: Tensor, plan: Any) -> Tensor:
    """[units, depth] -> [units/16, depth of whole groups / word, 16] of words, the first level
    lowest; zeros after the last.
    """
    units, depth = extents(levels)
    blocks, words = paired_blocks(units), whole_groups(depth, plan.group) // plan.word

    def stored(unit: PrimExpr, k: PrimExpr) -> PrimExpr:
        return levels(unit, k).astype("int32") & ((1 << plan.bits) - 1)

    def element(b: PrimExpr, w: PrimExpr, lane: PrimExpr) -> PrimExpr:
        def level(j: int) -> PrimExpr:
            k, unit = w * plan.word + j, b * BLOCK + lane

            def read(unit: PrimExpr) -> PrimExpr:
                return or_zero(k, depth, words * plan.word, lambda i: stored(unit, i), "int32")

            return or_zero(unit, units, blocks * BLOCK, read, "int32")

        found = level(0)
        for j in range(1, plan.word):
            found = found | (level(j) << (plan.bits * j))
        return found

    return te.compute((blocks, words, BLOCK), element, name=f"{levels.op.name}_words")


def pack_scale(scale: Tensor, plan: Any) -> Tensor:
    """[units, groups] -> [units/16, groups, 16] of float32, zeros after the last unit; for
    1 + level / 2^bits.
    """
    return _packed(scale, lambda value: value * float(1 << plan.bits))


def pack_zero(zero: Tensor, plan: Any) -> Tensor:
    """The same."""
    return _packed(zero, lambda value: value * (1.0 / (1 << plan.bits)) + 1.0)


def _packed(factors: Tensor, made: Callable[[PrimExpr], PrimExpr]) -> Tensor:
    units, groups = extents(factors)
    blocks = paired_blocks(units)

    def element(b: PrimExpr, g: PrimExpr, lane: PrimExpr) -> PrimExpr:
        value = or_zero(
            b * BLOCK + lane, units, blocks * BLOCK, lambda u: factors(u, g), factors.dtype
        )
        return made(value.astype("float32"))

    return te.compute((blocks, groups, BLOCK), element, name=f"{factors.op.name}_packed")
