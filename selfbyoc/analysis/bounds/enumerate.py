"""Index expressions over all iterations at once, by NumPy: the exact answer where extents are
small.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..._tvm import Analyzer, tvm
from ...codegen.vectors import found_in, lanes_of
from .accesses import Loop
from .expressions import LOADS

AT_ONCE, AT_MOST = 1 << 20, 1 << 26  # elements of an array; iterations in all

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "FloorDiv": np.floor_divide,
    "FloorMod": np.mod, "Min": np.minimum, "Max": np.maximum, "EQ": np.equal, "NE": np.not_equal,
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "And": np.logical_and, "Or": np.logical_or,
    "Div": lambda a, b: np.trunc(np.divide(a, b)).astype("int64"), "Mod": np.fmod,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "likely": lambda a: a, "if_then_else": np.where, "shift_right": np.right_shift,
    "shift_left": np.left_shift, "bitwise_and": np.bitwise_and, "bitwise_not": np.logical_not,
}  # fmt: skip


class Unknown(Exception):
    """An expression that is not of loop variables alone, or too many iterations."""


@dataclass(frozen=True)
class Turns:
    """Some iterations: those for which all conditions hold."""

    index: np.ndarray  # [iteration, lane]
    variables: Mapping[Any, np.ndarray]  # [iteration]


def variables(*exprs: Any) -> list[Any]:
    """The variables of expressions."""
    found: dict[Any, None] = {}
    for expr in exprs:
        found |= dict.fromkeys(found_in(expr, lambda n: type(n).__name__ in ("Var", "SizeVar")))
    return list(found)


def is_plain(expr: Any) -> bool:
    """Whether it is of loop variables alone."""
    return not found_in(expr, lambda node: type(node).__name__ in LOADS)


def turns(
    index: Any, guards: Sequence[Any], loops: Sequence[Loop], also: Sequence[Any] = ()
) -> Iterator[Turns]:
    """All iterations of the variables of an index and conditions (and of `also`), in parts."""
    used = used_by(index, guards, loops, also)
    whole = [loop for loop in loops if loop.var in used]
    if len(whole) != len(used):
        raise Unknown(f"its variables are not all of loops: {index}")
    sizes = extents(loops)
    counts = [sizes[loop.var] for loop in whole]
    lanes = lanes_of(index)
    if prod(counts) * lanes > AT_MOST:
        raise Unknown(f"{prod(counts) * lanes:.1e} iterations are too many to enumerate")
    outer = 0
    while outer < len(counts) and prod(counts[outer:]) * lanes > AT_ONCE:
        outer += 1
    for first in itertools.product(*map(range, counts[:outer])):
        yield _part(index, guards, whole, first, counts[outer:])


def _part(
    index: Any,
    guards: Sequence[Any],
    loops: Sequence[Loop],
    first: Sequence[int],
    counts: Sequence[int],
) -> Turns:
    grid = np.indices(counts).reshape(len(counts), -1) if counts else np.zeros((0, 1), "int64")
    steps = [*(np.full(grid.shape[1], i) for i in first), *grid]
    env: dict[Any, np.ndarray] = {}
    keep = np.ones((grid.shape[1], 1), bool)
    for loop, step in zip(loops, steps, strict=True):
        env[loop.var] = step[:, None] + evaluated(loop.first, env)
        keep &= step[:, None] < evaluated(loop.extent, env)
    for guard in guards:
        keep = keep & np.asarray(evaluated(guard, env), bool)
    if keep.shape[1] != 1:
        raise Unknown("a condition is a vector")
    env = {var: value[keep[:, 0]] for var, value in env.items()}
    shape = (int(keep.sum()), lanes_of(index))
    variables = {var: value[:, 0] for var, value in env.items()}
    return Turns(np.broadcast_to(evaluated(index, env), shape), variables)


def evaluated(expr: Any, env: Mapping[Any, Any]) -> Any:
    """An expression of integers for columns of its variables' values; a vector has its lanes in the
    other axis.
    """
    kind = type(expr).__name__
    if kind in ("Var", "SizeVar"):
        return env[expr]
    if kind == "IntImm":
        return int(expr.value)
    if kind in _BINARY:
        return _BINARY[kind](evaluated(expr.a, env), evaluated(expr.b, env))
    if kind in ("Cast", "Broadcast"):
        return evaluated(expr.value, env)
    if kind == "Ramp":
        steps = np.arange(lanes_of(expr))
        return evaluated(expr.base, env) + evaluated(expr.stride, env) * steps
    if kind == "Not":
        return np.logical_not(evaluated(expr.a, env))
    if kind == "Select":
        parts = (expr.condition, expr.true_value, expr.false_value)
        return np.where(*(evaluated(part, env) for part in parts))
    if kind == "Call":
        name = str(getattr(expr.op, "name", expr.op)).rpartition(".")[2]
        if name in _CALLS:
            return _CALLS[name](*(evaluated(arg, env) for arg in expr.args))
    raise Unknown(f"{kind} is not evaluated: {expr}")


def used_by(
    index: Any, guards: Sequence[Any], loops: Sequence[Loop], also: Sequence[Any] = ()
) -> set[Any]:
    """The variables of an index and conditions, and those that their ranges depend on."""
    used = {*variables(index, *guards), *also}
    for loop in reversed(loops):
        if loop.var in used:
            used |= set(variables(loop.first, loop.extent))
    return used


def extents(loops: Sequence[Loop]) -> dict[Any, int]:
    """The most iterations of each loop."""
    ana, found = Analyzer(), {}
    for loop in loops:
        most = ana.const_int_bound(loop.extent).max_value
        if most > AT_MOST:
            raise Unknown(f"the extent {loop.extent} is not bounded")
        found[loop.var] = int(most)
        ana.bind(loop.var, tvm.ir.Range.from_min_extent(loop.first, loop.extent))
    return found
