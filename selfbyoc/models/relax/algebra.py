"""Expressions of open sizes, each in its simplest form; a number is an int or a bool of Python."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...tvm import Analyzer, dtype_of, tir, tvm, walk
from ...tvm.types import Expr, PrimExpr

Extent = Any  # int or bool, or an expression of TIR

_MOST = 2**31 - 1  # that an index of 32 bits reaches


class Algebra:
    """Sizes are 0 or more, and at most what `bounds` says of them by name.

    `bounds` and `equal` (by variable) grow: which sizes a model can be right for at all is found
    while it is read.
    """

    def __init__(
        self,
        bounds: Mapping[str, int],
        given: Collection[Expr] = (),
        by: dict[str, str] | None = None,
    ) -> None:
        """`given`: the variables that are sizes of inputs. `by` gets the node (that the reader is
        at) which says a bound.
        """
        self.bounds, self.given = dict(bounds), list(given)
        self.by, self.node = {} if by is None else by, ""
        self.equal: dict[Any, Extent] = {}
        self.floors: dict[str, int] = {}  # by name: the least that a size of an input may be
        self.is_certain = True  # that each call computes the node at hand: not in a branch
        self._analyzer, self._bound = Analyzer(), set[Any]()

    def simplest(self, x: Extent) -> Extent:
        """An expression as a number, if it is one at every size; else simplified."""
        if hasattr(x, "asobject"):  # what == and != make of expressions
            x = x.asobject()
        if not isinstance(x, tvm.ir.Node):
            return x
        self._know(x)
        found = self._analyzer.simplify(x)
        if not isinstance(found, tir.IntImm):
            return found
        return bool(found) if dtype_of(found) == "bool" else int(found)

    def _know(self, x: PrimExpr) -> None:
        for var in variables(x):
            if var not in self._bound:
                self._bound.add(var)
                most = self.bounds.get(str(var.name), _MOST)
                self._analyzer.bind(var, tvm.ir.Range(0, most + 1))

    def holds(self, x: Extent) -> bool:
        """Whether a condition is true at every size."""
        return self.simplest(x) is True

    def are_equal(self, a: Extent, b: Extent) -> bool:
        """Whether two sizes are one number at every size: `a * b` and `b * a` by their
        difference.
        """
        difference = self.simplest(a - b)
        return isinstance(difference, int) and difference == 0

    def product(self, extents: Sequence[Extent]) -> Extent:
        """Of sizes; 1 of none."""
        return self.simplest(math.prod(extents))

    def quotient(self, a: Extent, b: Extent) -> Extent:
        """Rounded towards 0, as ONNX divides integers; of sizes that is downwards."""
        if isinstance(a, int) and isinstance(b, int):
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        is_size = self.holds(a >= 0) and self.holds(b >= 0)
        divide = tir.floordiv if is_size else tir.truncdiv
        return self.simplest(divide(_expression(a), _expression(b)))

    def shared(self, extents: Sequence[Extent], among: Sequence[Extent]) -> Extent:
        """The product of some sizes divided by that of others. Those in both are left out, for
        `(21 * h + 21) * w // 21` would stay so.
        """
        whole, parts = list(extents), list[Extent]()
        for part in among:
            place = next((n for n, e in enumerate(whole) if self.are_equal(e, part)), None)
            if place is None:
                parts.append(part)
            else:
                whole.pop(place)
        return self.quotient(self.product(whole), self.product(parts))

    def remainder(self, a: Extent, b: Extent) -> Extent:
        """With the sign of the divisor, as of Python's and ONNX's integers."""
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        return self.simplest(tir.floormod(_expression(a), _expression(b)))

    def least(self, a: Extent, b: Extent) -> Extent:
        """The smaller one."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.simplest(tir.Min(_expression(a), _expression(b)))

    def most(self, a: Extent, b: Extent) -> Extent:
        """The larger one."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.simplest(tir.Max(_expression(a), _expression(b)))

    def chosen(self, condition: Extent, a: Extent, b: Extent) -> Extent:
        """The first where a condition holds, else the second."""
        if isinstance(condition, (bool, int)):
            return a if condition else b
        if self.are_equal(a, b):
            return a
        return self.simplest(tir.Select(condition, _expression(a), _expression(b)))

    def promise(self, a: Extent, b: Extent) -> None:
        """Two sizes have to be equal, or the model is an error. What that says of a size that has a
        limit in one of them, `min(n, 512)` in `n`, is noted in `bounds`; what an input's size is
        by others, in `equal`; of a node that each call computes.
        """
        if not self.is_certain:
            return
        if self._bounded(a, b) or self._bounded(b, a):
            return
        for var, size in ((a, b), (b, a)):
            is_given = any(var is v or v.same_as(var) for v in self.given)
            if is_given and var not in self.equal and self._is_of_others(var, size):
                self.equal[var] = size
                return

    def _bounded(self, limited: Extent, size: Extent) -> bool:
        """Note what the largest size is, if one of them is the other one with a limit."""
        if not (isinstance(limited, tir.Min) and isinstance(size, tir.Var)):
            return False
        sides = [self.simplest(limited.a), self.simplest(limited.b)]
        most = next((s for s in sides if isinstance(s, int)), None)
        if most is None or not any(size.same_as(s) for s in sides):
            return False
        name = str(size.name)
        if most < self.bounds.get(name, _MOST):
            self.bounds[name] = most
            self.by[name] = self.node
        return True

    def demand(self, size: Extent, least: int) -> None:
        """A size has to be at least so large, or the model is an error. Of an input's `floors`
        notes it, if each call computes the node.
        """
        if not self.is_certain or not any(size is v or v.same_as(size) for v in self.given):
            return
        name = str(size.name)
        if least > self.floors.get(name, 0):
            self.floors[name] = least
            self.by[name] = self.node

    def _is_of_others(self, var: Expr, size: Extent) -> bool:
        """Whether a size follows from inputs' sizes, without this one and what follows from it."""
        inner = variables(size) if isinstance(size, tvm.ir.Node) else []
        free = [v for v in self.given if v not in self.equal and not v.same_as(var)]
        return all(any(v.same_as(f) for f in free) for v in inner)


def variables(x: PrimExpr) -> list[Expr]:
    """The sizes that an expression is of."""
    found = list[Any]()
    walk(x, lambda node: found.append(node) if isinstance(node, tir.Var) else None)
    return found


def _expression(x: Extent) -> PrimExpr:
    return tir.IntImm("int64", int(x)) if isinstance(x, int) else x
