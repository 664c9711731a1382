"""Words of two bfloat16: of weights, and of the channels of images, which are rounded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...machine import Machine
from ...tvm import te, tir
from ...tvm.own_ops import BFLOATS, LEVELS_OF, dot, word_of_bfloat16
from ...tvm.types import PrimExpr, Tensor
from ..steps.tensors import extents
from .words import Words, machine_of_words, words_of

WORD = LEVELS_OF[BFLOATS]
HELD = "bfloat16"
# Of a number: to round it takes about six instructions, and as half of a word it saves half of a
# multiply-add in each of its products.
LEAST_PRODUCTS = 16


def machine_of(cpu: Machine, of_words: bool) -> Machine:
    """A machine as its products of words are; of floats itself."""
    return machine_of_words(cpu, BFLOATS) if of_words else cpu


def steps_of(depth: int, of_words: bool) -> int:
    """Of a sum over so many numbers."""
    return words_of(depth, WORD) if of_words else depth


def times(of_words: bool) -> Callable[[PrimExpr, PrimExpr], PrimExpr]:
    """The product of two words, or of two floats."""
    return partial(dot, BFLOATS) if of_words else operator.mul


def word_along(read: Callable[[PrimExpr], PrimExpr], at: PrimExpr, size: int) -> PrimExpr:
    """A word of two neighbours of an axis of so many floats, zero after the last one."""

    def element(place: PrimExpr) -> PrimExpr:
        if size % WORD == 0:
            return read(place)
        near = tir.Min(place, size - 1)
        # Not `place < size`: TVM would take it for granted where the element is read. And not the
        # last one again, which times zero may be no number.
        return tir.Select(near == place, read(near), tir.const(0, "float32"))

    return word_of_bfloat16(*(element(at * WORD + n) for n in range(WORD)))


class RoundedWords(Words):
    """Channels of an image of floats as words, in parts of their own, zero after the last one."""

    def __init__(self, x: Any, parts: int, name: str) -> None:
        super().__init__(x, 1, BFLOATS, parts, name)

    def element(self, read: Callable[[PrimExpr], PrimExpr], place: PrimExpr) -> PrimExpr:
        """A channel of a part: not the last one again, which times zero may be no number."""
        if self.size % self.word == 0:
            return read(place)
        near = tir.Min(place, self.size - 1)
        # Not `place < size`: TVM would take it for granted where the element is read.
        return tir.Select(near == place, read(near), tir.const(0, "float32"))

    def made(self, elements: Sequence[PrimExpr]) -> PrimExpr:
        """A word of two floats."""
        return word_of_bfloat16(*elements)


def weight_words(weight: Tensor) -> Tensor:
    """[units, k, ...] of bfloat16 -> [units, k / 2, ...] of words, zero after the last input."""
    units, depth, *window = extents(weight)

    def element(at: PrimExpr, unit: PrimExpr, place: Sequence[PrimExpr]) -> PrimExpr:
        value = weight(unit, at, *place).astype("float32")
        # No Select: TVM drops a minimum in its index that the condition implies, and reads on.
        zero = tir.const(0, "float32")
        return value if depth % WORD == 0 else tir.if_then_else(at < depth, value, zero)

    def word(unit: PrimExpr, at: PrimExpr, *place: PrimExpr) -> PrimExpr:
        return word_of_bfloat16(*(element(at * WORD + n, unit, place) for n in range(WORD)))

    shape = (units, words_of(depth, WORD), *window)
    return te.compute(shape, word, name=f"{weight.op.name}_words")
