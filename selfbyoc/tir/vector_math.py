"""Functions that TVM lowered itself: their exp, tanh, squares and the like as vector expressions.

TVM calls the C library for each element, which a vectorised loop then does 16 times one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops import mathfn as M
from ..tvm import dtype_of, walk
from ..tvm.rewrite import map_calls
from ..tvm.types import PrimExpr, PrimFunc

_ONE: dict[str, Callable[[Any], Any]] = {
    "erf": M.erf, "exp": M.exp, "log": M.log, "sigmoid": M.sigmoid, "tanh": M.tanh,
}  # fmt: skip
# Of an argument: a polynomial repeats it, and one within another would multiply that.
MOST_NODES = 64


def vector_math(func: PrimFunc) -> PrimFunc:
    """The PrimFunc with float32 intrinsics replaced; others, and nested ones, stay."""
    return map_calls(func, _replaced)


def _replaced(call: PrimExpr) -> PrimExpr:
    name = getattr(call.op, "name", "").split(".")[-1]
    if name not in ("pow", *_ONE) or _nodes(call.args[0]) > MOST_NODES:
        return call
    if name == "pow":
        is_short = getattr(call.args[1], "value", None) in M.SHORT_POWERS
        return M.power(*call.args) if is_short else call
    return _ONE[name](call.args[0]) if dtype_of(call) == "float32" else call


def _nodes(expr: PrimExpr) -> int:
    found: list[int] = []
    walk(expr, lambda _: found.append(1))
    return len(found)
