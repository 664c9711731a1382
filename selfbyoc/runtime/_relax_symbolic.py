"""Relax: the default schedule for PrimFuncs of symbolic sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._tvm import dtype_of, param_buffers, tir
from .._tvm_rewrite import substitute
from .._tvm_symbolic import entry, size_variable
from ..codegen.symbolic.families import one_family
from ..codegen.symbolic.learn import Example
from ..errors import SymbolicError
from ..language.decisions import deciding

OTHERS = (3, 2, 17, 5, 61)


def symbols(func: Any) -> dict[str, Any]:
    """The variables among the extents of a PrimFunc's parameters, by name."""
    found: dict[str, Any] = {}
    for buffer in param_buffers(func):
        for extent in getattr(buffer, "shape", None) or ():
            if isinstance(extent, tir.Var):
                found.setdefault(str(extent.name), extent)
    return found


def scheduled_for_all_sizes(name: str, func: Any, schedule: Callable[[Any], Any]) -> dict[str, Any]:
    """The PrimFunc as `schedule` makes it, for every size of its symbols: learnt from some; and
    those that it calls, by name. Raises SymbolicError where they differ in more than sizes.
    """
    known = symbols(func)
    main, *others = reversed(known)

    def make(size: int, _: Any) -> Example:
        sizes = {main: size}
        for place, name in enumerate(others):
            sizes[name] = OTHERS[(size + 2 * place) % len(OTHERS)] + 8 * place
        numbers = {known[n]: tir.IntImm(dtype_of(known[n]), s) for n, s in sizes.items()}
        with deciding({}, fitted=True, lasting=True, sizes=sizes.values()):
            return Example(sizes, schedule(substitute(func, numbers)))

    found = one_family(main, None, make)
    least = found[0].least if found else math.inf
    if least > (1 if others else 2):
        raise SymbolicError("the default schedules of some sizes differ in more than sizes")
    variables = {symbol: size_variable(symbol) for symbol in known}
    every = found[0].learnt.function(variables)
    if least == 1:
        return {name: every}
    # A loop of one turn is none: what is left has other loops.
    parts = {f"{name}_of_one": make(1, {}).func, f"{name}_of_many": every}
    hollow = every.with_body(tir.Evaluate(tir.const(0)))
    which = tir.Select(variables[main] == 1, 0, 1)
    parts = {symbol: part.with_attr("global_symbol", symbol) for symbol, part in parts.items()}
    return {name: entry(hollow, [*parts], which), **parts}
