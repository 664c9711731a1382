"""Relax: a TopK of more than there are. TVM 0.27 leaves the places of those that are missing as
their memory was.
"""

from __future__ import annotations

from typing import Any

from ...ir.relax.symbols import text_of
from ...tvm import Analyzer, StringImm, walk
from ...tvm.symbolic import asserting
from ...tvm.types import Expr, PrimExpr, PrimFunc

_SORT = "tvm.contrib.sort.topk"


def with_enough(func: PrimFunc) -> PrimFunc:
    """A PrimFunc that raises an InputError where an axis has fewer elements than are taken of it:
    of whatever model, and in a branch only where that is taken.
    """
    calls: list[Any] = []

    def visit(call: Expr) -> None:
        first = call.args[0] if call.args else None
        if isinstance(first, StringImm) and first.value == _SORT:
            calls.append(call)

    walk(func.body, visit, "Call")
    return asserting(func, [check for call in calls for check in _checks(call)])


def _checks(call: Expr) -> list[tuple[PrimExpr, str]]:
    """What has to hold for one call of the sort: data, results, how many, axis, and more."""
    data, result = (list(array.args[1].args) for array in call.args[1:3])
    axis = int(call.args[-3])
    there, taken = data[axis], result[axis]
    if Analyzer().can_prove(there >= taken):
        return []
    return [(there >= taken, f"size {text_of(there)}: expected at least {text_of(taken)}")]
