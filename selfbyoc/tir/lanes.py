"""What a lowered expression says lane by lane, and turn by turn of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tvm import Analyzer, dtype_of, region_buffer, tir, walk
from ..tvm.rewrite import OPERATORS, mapped, substitute
from ..tvm.types import PrimExpr, PrimVar, TirNode

MOST_PADDING = 64  # turns before the first one for which a condition holds
_MONOTONE = ("LT", "LE", "GT", "GE", "EQ")  # of terms that are linear in a variable: an interval


def lanes_of(expr: PrimExpr) -> int:
    """Elements of a vector; 1 of a scalar."""
    return int(str(dtype_of(expr)).partition("x")[2] or 1)


def lane(expr: PrimExpr, i: int) -> PrimExpr:
    """One lane of a vector of indices; None if it cannot be told."""
    kind = type(expr).__name__
    if kind == "Ramp":
        return expr.base + expr.stride * i
    if kind == "Broadcast":
        return expr.value
    if kind not in OPERATORS:
        return None
    a, b = lane(expr.a, i), lane(expr.b, i)
    return None if a is None or b is None else OPERATORS[kind](a, b)


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """What must all hold for a condition to hold."""
    kind = type(condition).__name__
    if kind == "And":
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]


def is_interval(condition: PrimExpr, turn: PrimExpr) -> bool:
    """Whether it holds from one turn of the loop to another one and nowhere else."""
    if type(condition).__name__ not in _MONOTONE:
        return False
    term = condition.a - condition.b
    first, second, third = (substitute(term, {turn: turn + i}) for i in range(3))
    bend = Analyzer().simplify(third - second - (second - first))
    return getattr(bend, "value", None) == 0


def turns_where(
    conditions: Sequence[PrimExpr], turn: PrimExpr, turns: int
) -> tuple[int, int] | None:
    """The turns for which all conditions hold that depend on the turn alone, intervals all."""
    alone = [c for c in conditions if is_of_turn_alone(c, turn)]
    ana = Analyzer()

    def holds(at: int) -> bool:
        now = {turn: tir.const(at, dtype_of(turn))}
        return all(_is_true(ana, substitute(condition, now)) for condition in alone)

    first = next((at for at in range(min(turns, MOST_PADDING)) if holds(at)), None)
    if first is None:
        return None
    last = next((at for at in range(turns - 1, first, -1) if holds(at)), first)
    return first, last + 1


def _is_true(ana: Analyzer, condition: PrimExpr) -> bool:
    return bool(getattr(ana.simplify(condition), "value", 0))


def is_of_turn_alone(condition: PrimExpr, turn: PrimExpr) -> bool:
    """Whether it depends on the loop's variable and on nothing else."""
    names = found_in(
        condition, lambda node: type(node).__name__ in ("Var", "BufferLoad", "TensorLoad")
    )
    return all(node.same_as(turn) for node in names)


def found_in(expr: PrimExpr, wanted: Callable[[PrimExpr], bool]) -> list[PrimExpr]:
    """The nodes of an expression that are wanted."""
    found: list[Any] = []

    def visit(node: TirNode) -> None:
        if wanted(node):
            found.append(node)

    walk(expr, visit)
    return found


def depends(condition: PrimExpr, variables: Sequence[PrimVar]) -> bool:
    """Whether an expression has one of these."""
    return bool(found_in(condition, lambda node: any(node.same_as(v) for v in variables)))


def read_once(
    load: PrimExpr, along: PrimVar, count: int, beside: PrimVar
) -> tuple[PrimExpr, PrimExpr | None]:
    """A load whose elements go on where the loop `along` reads the last one again (an index is the
    least of two), and whether it never does in `count` turns; None: it has no such index.
    """
    last: list[PrimExpr] = []

    def going_on(least: PrimExpr) -> PrimExpr:
        for at, most in ((least.a, least.b), (least.b, least.a)):
            moves = depends(at, [along]) and not depends(at, [beside])
            if moves and not depends(most, [along, beside]):
                last.append(substitute(at, {along: tir.const(count - 1)}) <= most)
                return at
        return least

    (index,) = load.indices
    found = tir.BufferLoad(region_buffer(load), [mapped(index, "Min", going_on)])
    return (found, tir.all(*last)) if last else (load, None)
