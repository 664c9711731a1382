"""A kernel for all sizes from kernels for some.

A schedule makes the same loops for 131 rows as for 179: what differs are integers, and each of
them is a formula of the size (formula.py). So the kernels of some sizes, scheduled as any other,
say what the one for every size is, whatever composite and schedule they come from; where they
differ in more than integers, or an integer follows no formula, there is none. A float that is a
whole number, or one over it, as a mean divides by, counts as that integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from ...tvm import tir, walk
from ...tvm.numbers import map_numbers, stand_in, without_numbers
from ...tvm.symbolic import size_variable, with_factors_last
from ...tvm.types import PrimExpr, PrimFunc, Stmt
from .equality import are_the_same
from .formula import Formula, Sizes, Tiles, fitted_all

VECTORIZED, UNROLLED = 2, 3  # tir.ForKind


@dataclass(frozen=True)
class Example:
    """A scheduled PrimFunc and the sizes that it is for."""

    sizes: Sizes
    func: PrimFunc

    @cached_property
    def _parts(self) -> tuple[list[int], PrimFunc]:
        return without_numbers(self.func)

    @property
    def integers(self) -> list[int]:
        """All of its integers, in the order of a walk; of other floats 0."""
        return self._parts[0]

    @property
    def loops(self) -> PrimFunc:
        """The function without its integers: equal for those that differ in these only."""
        return self._parts[1]


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

    @property
    def symbols(self) -> dict[str, PrimExpr]:
        """Variables for its sizes."""
        return {name: size_variable(name) for name in self.examples[0].sizes}

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
        if example.loops == self.examples[0].loops:
            values = (formula.at(example.sizes) for formula in self.formulas)
            return list(values) == example.integers
        return are_the_same(self.at(example.sizes), example.func)

    def function(self, variables: Mapping[str, PrimExpr]) -> PrimFunc:
        """The PrimFunc of all sizes, with these variables for them."""
        made = self._made(lambda node, formula: stand_in(node, expression(formula, variables)))
        return with_factors_last(made)

    def at(self, sizes: Sizes) -> PrimFunc:
        """The PrimFunc of these sizes."""
        return self._made(lambda node, formula: stand_in(node, formula.at(sizes)))

    def _made(self, value: Callable[[PrimExpr, Formula], PrimExpr]) -> PrimFunc:
        formulas = iter(self.formulas)

        def general(node: PrimExpr) -> PrimExpr:
            formula = next(formulas)
            return value(node, formula) if formula.tiles else node

        return map_numbers(self.examples[0].func, general)


def learnt(examples: Sequence[Example]) -> Learnt | None:
    """What examples say of all sizes; None where they differ in more than formulas can say."""
    first, *others = examples
    if any(example.loops != first.loops for example in others):
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

    def visit(node: Stmt) -> None:
        if int(node.kind) in (VECTORIZED, UNROLLED):
            open_ones.extend([] if isinstance(node.extent, tir.IntImm) else [node])

    walk(found.function({name: tir.Var(name, "int32") for name in names}).body, visit, "For")
    return not open_ones


def expression(formula: Formula, variables: Mapping[str, PrimExpr]) -> PrimExpr:
    """A formula of TVM's variables, of 32 bits."""
    total: Any = 0
    for factor, counts in formula.terms:
        term: Any = factor
        for count in counts:
            term = _tiles(count, variables) * term
        total = term + total
    return total


def _tiles(count: Tiles, variables: Mapping[str, PrimExpr]) -> PrimExpr:
    """ceil(size / tile) as TVM can reason about it: of (size + tile - 1) // tile it does not see
    that the tiles cover the size.
    """
    size: Any = variables[count.symbols[0]]
    for name in count.symbols[1:]:
        size = size * variables[name]
    size = size * count.times if count.times > 1 else size
    if count.tile == 1:
        return size + count.shift if count.shift else size
    return tir.floordiv(size + (count.shift - 1), count.tile) + 1
