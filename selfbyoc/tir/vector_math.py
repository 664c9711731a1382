"""Functions that TVM lowered itself: their exp, tanh, squares and the like as vector expressions.

TVM calls the C library for each element, which a vectorised loop then does 16 times one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops import mathfn as M
from ..ops.cells import once
from ..tvm import dtype_of
from ..tvm.rewrite import map_calls
from ..tvm.types import PrimExpr, PrimFunc

_ONE: dict[str, Callable[[Any], Any]] = {
    "erf": M.erf, "exp": M.exp, "log": M.log, "sigmoid": M.sigmoid, "tanh": M.tanh,
}  # fmt: skip


def vector_math(func: PrimFunc) -> PrimFunc:
    """The PrimFunc with float32 intrinsics replaced; others stay.

    A polynomial names its argument 50 times, in whose place the schedule puts all that is computed
    before it. As one value it is computed once: 4 x 300 channels of 7x7 pixels, joined, a batch
    norm and SiLU 820 us, 139 so (one core of Zen 3, Nov 2026).
    """
    return map_calls(func, _replaced)


def _replaced(call: PrimExpr) -> PrimExpr:
    name = getattr(call.op, "name", "").split(".")[-1]
    if name == "pow":
        is_short = getattr(call.args[1], "value", None) in M.SHORT_POWERS
        return M.power(*call.args) if is_short else call
    return once(call.args[0], _ONE[name]) if name in _ONE and dtype_of(call) == "float32" else call
