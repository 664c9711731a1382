"""Inputs whose sizes a program of torch.export has as `32 * s`, as the sides of an image that its
module halves five times, or as `s + 1`.

A call says the size and not `s`, which TVM's virtual machine (0.27) computes of sizes that are
symbols alone. So the size has a symbol of its own, by input and axis, and `s` is computed of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import relax

from ....tvm import tir, tvm
from ....tvm.rewrite import substitute
from ....tvm.types import Expr
from ..algebra import Algebra, Extent, variables

# The least size that PyTorch (2.5 to 2.13) writes where a Dim names none: 0 and 1 are constants to
# its tracing, and what it traced is right for them.
NO_PROMISE = 2
_TWO = [tir.IntImm("int64", n) for n in (0, 1)]
Limits = Mapping[str, tuple[int, int | None]]  # of sizes by name


@dataclass
class Multiples:
    """Inputs by name with symbols for sizes; `of`: what PyTorch's symbols are then."""

    algebra: Algebra
    limits: dict[str, tuple[int, int | None]]
    of: dict[Any, Extent] = field(default_factory=dict)

    def input(self, name: str, var: Expr, known: set[str]) -> Expr:
        """An input as one that has symbols, but for sizes that follow from these `known` ones."""
        shape = [self._size(f"{name}_{n}", e, known) for n, e in enumerate(var.ty.shape.values)]
        return relax.Var(name, relax.TensorType(shape, var.ty.dtype))

    def _size(self, name: str, extent: Extent, known: set[str]) -> Extent:
        inner = variables(extent) if isinstance(extent, tvm.ir.Node) else []
        if isinstance(extent, tir.Var) or len(inner) != 1:
            return extent
        (symbol,) = inner
        more, one = (self.algebra.simplest(substitute(extent, {symbol: n})) for n in _TWO)
        factor = one - more
        is_linear = factor > 0 and self.algebra.are_equal(extent, symbol * factor + more)
        if symbol in self.of or str(symbol.name) in known or not is_linear:
            return self.algebra.simplest(substitute(extent, self.of))
        size = tir.Var(name, "int64")
        self.of[symbol] = self.algebra.quotient(self.algebra.simplest(size - more), factor)
        least, most = self.limits.pop(str(symbol.name), (0, None))
        least = least * factor + more if least > NO_PROMISE else 0
        self.limits[name] = (least, None if most is None else most * factor + more)
        return size


def with_symbols(
    inputs: Mapping[str, Expr], limits: Limits, algebra: Algebra
) -> tuple[dict[str, Expr], dict[str, tuple[int, int | None]], dict[str, Extent]]:
    """Inputs and the limits of their sizes; and what PyTorch's symbols are in these, by name."""
    known = {
        str(e.name): e
        for var in inputs.values()
        for e in getattr(var.ty.shape, "values", ())
        if isinstance(e, tir.Var)
    }
    multiples = Multiples(algebra, dict(limits))
    made = {
        name: multiples.input(name, var, set(known)) if _is_open(var) else var
        for name, var in inputs.items()
    }
    computed = {str(symbol.name): size for symbol, size in multiples.of.items()}
    return made, multiples.limits, {**known, **computed}


def _is_open(var: Expr) -> bool:
    extents = getattr(var.ty.shape, "values", ())
    return any(not isinstance(e, (tir.Var, tir.IntImm)) for e in extents)
