"""Sums of 16 bits, two in a word of 32: `vpmaddubsw` and `vpaddw`, and `vpmaddwd` once for all.

Where several products of bytes fit 16 bits they need no `vpmaddwd` each: of 4 bits by 8 eight
words are summed so. Where a CPU multiplies and sums bytes in one instruction nobody asks for
it (Machine.sums_in_halves); what is no vector is written out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..machine.products import products_of
from ..tvm.own_ops import (
    ADDED_HALVES,
    BYTES_OF_7,
    HALVES,
    TOTAL_OF_HALVES,
    as_bits,
    has_own,
    is_own,
    lanes_of,
    own_op,
)
from ..tvm.rewrite import map_calls
from ..tvm.types import PrimExpr, PrimFunc, Target
from .dot_products import everywhere, is_whole, sum_of_twos, twos

_MOST = {"avx512bw": 16, "avx2": 8, "ssse3": 4, "": 0}  # lanes, by the feature


def with_sums_in_halves(func: PrimFunc, target: Target) -> PrimFunc:
    """A scheduled function with the target's instructions for them."""
    if not has_own(func, HALVES):
        return func
    feature = products_of(target, BYTES_OF_7)
    found = feature if feature in _MOST else ""

    def made(call: PrimExpr) -> PrimExpr:
        name = next((name for name in _WHOLE if is_own(call, name)), "")
        return _LOWERED[name, found](*call.args) if name else call

    return map_calls(func, made)


def _products(a: PrimExpr, w: PrimExpr) -> PrimExpr:
    return as_bits(f"int32x{lanes_of(a)}", twos(a, w))


def _added(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    lanes = lanes_of(a)
    left, right = (as_bits(f"int16x{2 * lanes}", value) for value in (a, b))
    return as_bits(f"int32x{lanes}", left + right)


def _total(a: PrimExpr) -> PrimExpr:
    return sum_of_twos(as_bits(f"int16x{2 * lanes_of(a)}", a))


def _half(word: PrimExpr, at: int) -> PrimExpr:
    """The lower or the upper 16 bits, with their sign."""
    lanes = lanes_of(word)
    moved = word if at else word << everywhere(lanes, 16)
    return moved >> everywhere(lanes, 16)


def _together(low: PrimExpr, high: PrimExpr) -> PrimExpr:
    lanes = lanes_of(low)
    return (low & everywhere(lanes, 0xFFFF)) | (high << everywhere(lanes, 16))


def _products_written_out(a: PrimExpr, w: PrimExpr) -> PrimExpr:
    lanes = lanes_of(a)

    def product(at: int) -> PrimExpr:
        left = (a >> everywhere(lanes, 8 * at)) & everywhere(lanes, 255)
        return left * ((w << everywhere(lanes, 24 - 8 * at)) >> everywhere(lanes, 24))

    return _together(product(0) + product(1), product(2) + product(3))


def _added_written_out(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return _together(*(_half(a, at) + _half(b, at) for at in (0, 1)))


def _total_written_out(a: PrimExpr) -> PrimExpr:
    return _half(a, 0) + _half(a, 1)


def _lowered(
    most: int,
    by_instruction: Callable[..., PrimExpr],
    written_out: Callable[..., PrimExpr],
    *args: PrimExpr,
) -> PrimExpr:
    return (by_instruction if is_whole(lanes_of(args[0]), most) else written_out)(*args)


_WHOLE: dict[str, tuple[Callable[..., PrimExpr], Callable[..., PrimExpr]]] = {
    HALVES: (_products, _products_written_out),
    ADDED_HALVES: (_added, _added_written_out),
    TOTAL_OF_HALVES: (_total, _total_written_out),
}
_LOWERED = {
    (name, feature): own_op(f"{name}.{feature or 'any'}", partial(_lowered, most, *how))
    for name, how in _WHOLE.items()
    for feature, most in _MOST.items()
}
