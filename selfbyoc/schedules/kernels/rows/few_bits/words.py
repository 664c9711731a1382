"""Levels of few bits in words of 32, their scales and their zero points, as kernels read them.

A word's bytes hold neighbours, and its later levels lie above the first ones: so four neighbours
become four bytes, or two of them 16 bits each, by a shift and an and (`levels_of_word`).

Where floats are multiplied, what is taken of a level is 1 + level / 2^bits, which is made without a
conversion: the level is the first bits of the mantissa, those of the exponent say 1. Scales and
zero points are packed for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .....tvm import te, tir
from .....tvm.types import PrimExpr, Tensor
from ....steps.tensors import extents, or_zero
from ....steps.tiles import BLOCK
from ..forms import paired_blocks

WORD, BYTES = 32, 4  # bits of one, and its bytes
MANTISSA, ONE = 23, 0x3F800000  # of a float32, and its bits of 1.0


def whole_groups(depth: int, group: int) -> int:
    """Whole groups."""
    return -(-depth // group) * group


def in_whole_groups(x: Tensor, padded: int) -> Tensor:
    """With zeros after the last element of a row."""
    *lead, depth = extents(x)
    if padded == depth:
        return x

    def element(*i: PrimExpr) -> PrimExpr:
        # No Select: TVM drops a minimum in its index that the condition implies, and reads on.
        return tir.if_then_else(i[-1] < depth, x(*i), tir.const(0, x.dtype))

    return te.compute((*lead, padded), element, name=f"{x.op.name}_whole")


def lowest_bit(place: Any, bits: int) -> Any:
    """Where a level lies in its word."""
    return place % BYTES * 8 + place // BYTES * bits


def levels_of_word(word: PrimExpr, place: PrimExpr, bits: int, count: int) -> PrimExpr:
    """Four levels as the bytes of a word, or two as its halves: the `place`-th that it has; halves
    are of levels 0 and 2 of four, then of 1 and 3.
    """
    each = BYTES // count
    moved = tir.floordiv(place, each) * bits + tir.floormod(place, each) * 8
    most = ((1 << bits) - 1) * (0x01010101 if count == BYTES else 0x00010001)
    if bits * count == WORD:  # all of it
        return word
    return (word >> moved) & tir.const(most, "int32")


def fraction(word: PrimExpr, place: PrimExpr, bits: int) -> PrimExpr:
    """1 + level / 2^bits."""
    first = MANTISSA - bits
    left = first - lowest_bit(place, bits)
    # One of both is a shift by 0, once the loop over a word is unrolled.
    moved = (word << tir.Max(left, 0)) >> tir.Max(-left, 0)
    return tir.reinterpret("float32", (moved & (((1 << bits) - 1) << first)) | ONE)


def pack_levels(levels: Tensor, plan: Any) -> Tensor:
    """[units, depth] -> [units/16, depth of whole groups / word, 16] of words; zeros after the last
    level.
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
            found = found | (level(j) << lowest_bit(j, plan.bits))
        return found

    return te.compute((blocks, words, BLOCK), element, name=f"{levels.op.name}_words")


def pack_scale(scale: Tensor, plan: Any) -> Tensor:
    """[units, groups] -> [units/16, groups, 16], zeros after the last unit; where floats are
    multiplied, float32 for 1 + level / 2^bits.
    """
    return _packed(scale, plan, lambda value: value * float(1 << plan.bits))


def pack_zero(zero: Tensor, plan: Any) -> Tensor:
    """The same."""
    return _packed(zero, plan, lambda value: value * (1.0 / (1 << plan.bits)) + 1.0)


def _packed(factors: Tensor, plan: Any, made: Callable[[PrimExpr], PrimExpr]) -> Tensor:
    units, groups = extents(factors)
    alike = units == groups == 1  # a zero point that all share; or there is one group
    blocks, lanes = (1, 1) if alike else (paired_blocks(units), BLOCK)

    def element(b: PrimExpr, g: PrimExpr, lane: PrimExpr) -> PrimExpr:
        value = or_zero(
            b * lanes + lane, units, blocks * lanes, lambda u: factors(u, g), factors.dtype
        )
        if plan.levels is None:
            return made(value.astype("float32"))
        stays = plan.half_scales or factors.dtype != "float16"
        return value if stays else value.astype("float32")

    return te.compute((blocks, groups, lanes), element, name=f"{factors.op.name}_packed")
