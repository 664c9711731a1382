"""Index expressions for many values of their variables at once, by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import dtype_of
from .types import PrimExpr

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


def evaluated(expr: PrimExpr, env: Mapping[PrimExpr, np.ndarray]) -> np.ndarray | int:
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
        steps = np.arange(int(str(dtype_of(expr)).partition("x")[2] or 1))
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
