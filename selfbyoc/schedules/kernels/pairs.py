"""Words of two levels of what is computed: products of two activations, alone and in attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...language.decisions import is_symbolic
from ...machine import Machine
from ...tvm import tir
from ...tvm.own_ops import LEVELS_OF, PAIRS
from ...tvm.types import PrimExpr
from .words import machine_of_words, word_of


def machine_of_pairs(cpu: Machine) -> Machine:
    """A machine as its products of words of two are that are made while they are read. LLVM has the
    vectors of two steps at once: of 6 x 2 sums in 16 registers it keeps one in memory (12x128x64 by
    64x128 on Zen 3: 311 us, 5 x 2: 261).
    """
    found = machine_of_words(cpu, PAIRS)
    return found if found.fused else replace(found, vector_registers=found.vector_registers - 1)


def word_along(
    level: Callable[[PrimExpr], PrimExpr], at: PrimExpr, size: int, last: PrimExpr | None
) -> PrimExpr:
    """The word number `at` of two of so many levels. After the last level comes `last`; that one
    again without.
    """
    word = LEVELS_OF[PAIRS]
    is_open = size % word > 0 or is_symbolic(size)

    def element(n: int) -> PrimExpr:
        place = at * word + n
        near = tir.Min(place, size - 1) if is_open and n and last is None else place
        has_end = is_open and n > 0 and last is not None
        value = level(near)
        return tir.if_then_else(place < size, value, last) if has_end else value

    return word_of([element(n) for n in range(word)])
