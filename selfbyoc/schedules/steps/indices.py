"""What an index says of an axis of its block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...tvm import Analyzer, dtype_of, tir, walk
from ...tvm.rewrite import substitute
from ...tvm.types import PrimExpr


@dataclass(frozen=True)
class Axis:
    """One iteration variable of a block."""

    position: int
    extent: int
    reduces: bool
    var: PrimExpr


def uses(index: PrimExpr, axis: Axis) -> int:
    """How often an index names an axis."""
    found: list[Any] = []
    walk(index, lambda n: found.append(n) if n.same_as(axis.var) else None, "Var")
    return len(found)


def groups_in(index: PrimExpr, axis: Axis) -> list[int]:
    """What an index divides an axis by, once for each time that it does."""
    found: list[int] = []

    def visit(node: PrimExpr) -> None:
        if node.a.same_as(axis.var) and hasattr(node.b, "value"):
            found.append(int(node.b.value))

    walk(index, visit, "FloorDiv")
    return found


def is_axis(index: PrimExpr, axis: Axis, axes: Sequence[Axis]) -> bool:
    """Whether an index is an axis, those of one element aside (of a window as large as its image,
    `y * 14 + ry`).
    """
    if index.same_as(axis.var):
        return True
    if dtype_of(index) != dtype_of(axis.var):
        return False
    zero = {a.var: tir.const(0, dtype_of(a.var)) for a in axes if a.extent == 1 and a is not axis}
    found = Analyzer().simplify(substitute(index, zero) - axis.var)
    return bool(getattr(found, "value", None) == 0)
