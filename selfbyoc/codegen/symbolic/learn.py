"""A kernel for all sizes from kernels for some.

A schedule makes the same loops for 131 rows as for 179: what differs are integers, and each of
them is a formula of the size (formula.py). So the kernels of some sizes, scheduled as any other,
say what the one for every size is, whatever composite and schedule they come from; where they
differ in more than integers, or an integer follows no formula, there is none. A float that is a
whole number, or one over it, as a mean divides by, counts as that integer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from ..._tvm import dtype_of, structural_equal, structural_hash, tir, walk
from ..._tvm_rewrite import map_numbers
from .formula import Formula, Sizes, Tiles, fitted_all
from .same import are_the_same

VECTORIZED, UNROLLED = 2, 3  # tir.ForKind
MOST_WHOLE = 1 << 24  # of floats: all whole numbers up to there are float32


@dataclass(frozen=True)
class Example:
    """A scheduled PrimFunc and the sizes that it is for."""

    sizes: Sizes
    func: Any

    @cached_property
    def integers(self) -> list[int]:
        """All of its integers, in the order of a walk; of other floats 0."""
        found: list[int] = []

        def note(node: Any) -> Any:
            found.append(_whole(node)[0])
            return node

        map_numbers(self.func, note)
        return found

    @cached_property
    def loops(self) -> Any:
        """The function without its integers."""
        return map_numbers(self.func, _without_size)

    @cached_property
    def key(self) -> tuple[int, int]:
        """Equal for functions that differ in integers only, as good as never for others."""
        return len(self.integers), int(structural_hash(self.loops))


@dataclass(frozen=True)
class Learnt:
    """What examples of the same loops have in common: each integer as a formula of the sizes.

    Valid for a symbol from the least size of the examples on, in steps of what they differ by.
    """

    examples: tuple[Example, ...]
    formulas: tuple[Formula, ...]

    @property
    def tiles(self) -> set[Tiles]:
        """The counts of tiles that it depends on."""
        return set().union(*(formula.tiles for formula in self.formulas))

    def least(self, symbol: str) -> int:
        """The least size of a symbol among the examples."""
        return min(example.sizes[symbol] for example in self.examples)

    def step(self, symbol: str) -> int:
        """The greatest common divisor of the distances between the examples' sizes; 0: there is
        but one.
        """
        sizes = [example.sizes[symbol] for example in self.examples]
        return reduce(math.gcd, (size - sizes[0] for size in sizes))

    def says(self, example: Example) -> bool:
        """Whether it gives this one too, or one that is the same once simplified: of a loop of one
        turn a schedule makes none.
        """
        values = [formula.at(example.sizes) for formula in self.formulas]
        if example.key == self.examples[0].key:
            return values == example.integers
        each = iter(values)
        made = map_numbers(self.examples[0].func, lambda node: _stated(node, next(each)))
        return are_the_same(made, example.func)

    def function(self, variables: Mapping[str, Any]) -> Any:
        """The PrimFunc of all sizes, with these variables for them."""
        count = itertools.count()

        def general(node: Any) -> Any:
            formula = self.formulas[next(count)]
            return node if not formula.tiles else _like(node, expression(formula, variables))

        return map_numbers(self.examples[0].func, general)


def _whole(node: Any) -> tuple[int, bool]:
    """The integer that a number is or, of a float, is one over (true); 0 of other floats."""
    if isinstance(node, tir.IntImm):
        return int(node.value), False
    value = float(node.value)
    if 1 < value <= MOST_WHOLE and value == int(value):
        return int(value), False
    if not 1 / MOST_WHOLE <= value < 1:
        return 0, False
    count = round(1 / value)
    return (count, True) if np.float32(1 / count) == np.float32(value) else (0, False)


def _without_size(node: Any) -> Any:
    """A number that shows nothing of the integer that it stands for, but how it does."""
    if isinstance(node, tir.IntImm):
        return tir.IntImm(dtype_of(node), 0)
    count, is_inverse = _whole(node)
    return tir.const(0.5 if is_inverse else 2.0, dtype_of(node)) if count else node


def _stated(node: Any, count: int) -> Any:
    """A number that stands for another integer."""
    known, is_inverse = _whole(node)
    if known == count:
        return node
    return tir.const(1 / count if is_inverse else count, dtype_of(node))


def _like(node: Any, count: Any) -> Any:
    """An integer in place of a number, as that stands for it."""
    if isinstance(node, tir.IntImm):
        return count
    value = tir.Cast(dtype_of(node), count)
    return tir.const(1.0, dtype_of(node)) / value if _whole(node)[1] else value


def learnt(examples: Sequence[Example]) -> Learnt | None:
    """What examples say of all sizes; None where they differ in more than formulas can say."""
    first, *others = examples
    if any(e.key != first.key or not structural_equal(e.loops, first.loops) for e in others):
        return None
    columns = list(zip(*(example.integers for example in examples), strict=True))
    found = fitted_all([example.sizes for example in examples], list(dict.fromkeys(columns)))
    formulas = tuple(formula for column in columns if (formula := found[column]) is not None)
    made = Learnt(tuple(examples), formulas)
    return made if len(formulas) == len(columns) and _can_be_lowered(made) else None


def _can_be_lowered(found: Learnt) -> bool:
    """Whether vectors and unrolled loops have constant extents, as TVM wants them."""
    names = {name for example in found.examples for name in example.sizes}
    open_ones: list[Any] = []

    def visit(node: Any) -> None:
        if type(node).__name__ == "For" and int(node.kind) in (VECTORIZED, UNROLLED):
            open_ones.extend([] if isinstance(node.extent, tir.IntImm) else [node])

    walk(found.function({name: tir.Var(name, "int32") for name in names}).body, visit)
    return not open_ones


def expression(formula: Formula, variables: Mapping[str, Any]) -> Any:
    """A formula of TVM's variables, of 32 bits."""
    total: Any = 0
    for factor, counts in formula.terms:
        term: Any = factor
        for count in counts:
            term = _tiles(count, variables) * term
        total = term + total
    return total


def _tiles(count: Tiles, variables: Mapping[str, Any]) -> Any:
    """ceil(size / tile) as TVM can reason about it: of (size + tile - 1) // tile it does not see
    that the tiles cover the size.
    """
    size: Any = variables[count.symbols[0]]
    for name in count.symbols[1:]:
        size = size * variables[name]
    if count.tile == 1:
        return size + count.shift if count.shift else size
    return tir.floordiv(size + (count.shift - 1), count.tile) + 1
