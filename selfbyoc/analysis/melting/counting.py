"""How often a block runs: loops and predicates counted exactly, by evaluating the predicates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ...tvm import walk
from ...tvm.types import PrimExpr, Stmt

# Points at which one predicate is evaluated; with more, the loops' product is given as a bound.
MOST_POINTS = 1 << 21


@dataclass(frozen=True)
class Count:
    """A number of iterations; `exact` is False where it is an upper bound."""

    times: int
    exact: bool = True


@dataclass(frozen=True)
class Range:
    """A loop as counting sees it: its variable, and the values that it takes."""

    var: PrimExpr
    start: int
    extent: int


class Unknown(Exception):
    """An expression cannot be evaluated, with what it is."""


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Min": np.minimum,
    "Max": np.maximum,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
}


def enter(loop: Stmt, outer: Sequence[Range]) -> tuple[Range, list[PrimExpr]]:
    """A loop under others, as the values that it can take at most, and the condition for the rest.

    The extent of what compute_at makes may depend on the loops around it.
    """
    try:
        start = int(evaluate(loop.min, {}, {}))
        most = _largest(loop.extent, outer)
    except Unknown as err:
        raise InputError(f"prim_func: a loop of unknown extent: {err}") from err
    fixed = type(loop.extent).__name__ == "IntImm"
    conditions = [] if fixed else [loop.loop_var < loop.extent + start]
    return Range(loop.loop_var, start, most), conditions


def _largest(extent: PrimExpr, outer: Sequence[Range]) -> int:
    if type(extent).__name__ == "IntImm":
        return int(extent.value)
    used = variables(extent, {})
    loops = [loop for loop in outer if hash(loop.var) in used]
    if math.prod(loop.extent for loop in loops) > MOST_POINTS:
        raise Unknown(str(extent))
    return int(np.max(evaluate(extent, _grid(loops), {})))


def _grid(loops: Sequence[Range]) -> dict[int, np.ndarray]:
    """Each variable's values, along an axis of its own."""
    if not loops:
        return {}
    axes = np.ogrid[tuple(slice(x.start, x.start + x.extent) for x in loops)]
    return {hash(loop.var): axis for loop, axis in zip(loops, axes, strict=True)}


def evaluate(
    expr: PrimExpr, values: Mapping[int, np.ndarray], bound: Mapping[int, PrimExpr]
) -> Any:
    """An expression over NumPy values of its variables (by hash); `bound` variables are
    expressions.
    """
    kind = type(expr).__name__
    if kind == "Var":
        key = hash(expr)
        if key in values:
            return values[key]
        if key in bound:
            return evaluate(bound[key], values, bound)
        raise Unknown(f"variable {expr.name}")
    if kind == "IntImm":
        return int(expr.value)
    if kind in _BINARY:
        return _BINARY[kind](evaluate(expr.a, values, bound), evaluate(expr.b, values, bound))
    if kind == "Not":
        return np.logical_not(evaluate(expr.a, values, bound))
    if kind == "Cast":
        return evaluate(expr.value, values, bound)
    if kind == "Call" and str(getattr(expr.op, "name", "")).endswith("likely"):
        return evaluate(expr.args[0], values, bound)
    raise Unknown(f"{kind} in {expr}")


def variables(expr: PrimExpr, bound: Mapping[int, PrimExpr]) -> dict[int, PrimExpr]:
    """The loop variables under an expression, by hash; bound ones are looked through."""
    found: dict[int, Any] = {}

    def visit(node: PrimExpr) -> None:
        if type(node).__name__ != "Var":
            return
        key = hash(node)
        if key in bound:
            found.update(variables(bound[key], bound))
        else:
            found[key] = node

    walk(expr, visit)
    return found


def count(
    loops: Sequence[Range],
    conditions: Sequence[PrimExpr],
    bound: Mapping[int, PrimExpr] | None = None,
    results: Sequence[PrimExpr] | None = None,
) -> Count:
    """How many iterations of some loops satisfy all conditions.

    With `results`, how many different tuples of values these expressions take in them.
    What shares no variable is independent: each group is evaluated over its own loops.
    """
    bound = bound or {}
    ranges = {hash(loop.var): loop for loop in loops}
    terms = [(term, True) for condition in conditions for term in conjuncts(condition)]
    terms += [(result, False) for result in results or ()]
    times, exact = 1, True
    used: set[int] = set()
    for keys, group in _groups(terms, bound):
        inside = [ranges[key] for key in ranges if key in keys]
        found = _of_group(inside, group, bound, distinct=results is not None)
        times, exact, used = times * found.times, exact and found.exact, used | keys
    if results is None:
        times *= math.prod(loop.extent for key, loop in ranges.items() if key not in used)
    return Count(times, exact)


Term = tuple[Any, bool]  # an expression, and whether it is a condition


def _groups(
    terms: Sequence[Term], bound: Mapping[int, PrimExpr]
) -> list[tuple[set[int], list[Term]]]:
    """Terms with the variables that they are about; those that share one are together."""
    groups: list[tuple[set[int], list[Term]]] = []
    for term in terms:
        keys, together = set(variables(term[0], bound)), [term]
        apart = []
        for other, others in groups:
            if keys & other:
                keys, together = keys | other, [*others, *together]
            else:
                apart.append((other, others))
        groups = [*apart, (keys, together)]
    return groups


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The terms of a conjunction; none for a constant True."""
    if type(condition).__name__ == "And":
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    if type(condition).__name__ == "IntImm" and int(condition.value) == 1:
        return []
    return [condition]


def _of_group(
    loops: Sequence[Range], terms: Sequence[Term], bound: Mapping[int, PrimExpr], distinct: bool
) -> Count:
    points = math.prod(loop.extent for loop in loops)
    if points > MOST_POINTS:
        return Count(points, exact=False)
    shape = tuple(loop.extent for loop in loops)
    values = _grid(loops)
    try:
        found = [(np.broadcast_to(evaluate(t, values, bound), shape), c) for t, c in terms]
    except Unknown:
        return Count(points, exact=False)
    holds = np.ones(shape, bool)
    for value, is_condition in found:
        holds = holds & value if is_condition else holds
    if not distinct:
        return Count(int(np.count_nonzero(holds)))
    columns = [value[holds] for value, is_condition in found if not is_condition]
    return Count(_different(columns) if columns else int(holds.any()))


def _different(columns: Sequence[np.ndarray]) -> int:
    """How many different rows some columns of integers have."""
    code = np.zeros(columns[0].shape, np.int64)
    for column in columns:
        low = column.min(initial=0)
        code = code * (int(column.max(initial=0)) - int(low) + 1) + (column - low)
    return len(np.unique(code))
