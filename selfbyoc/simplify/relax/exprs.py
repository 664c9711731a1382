"""Relax: what rewritings ask of an expression."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm import relax

from ...ir.relax import Constant
from ...tvm import constant_numpy
from ...tvm.types import Expr, Function, IRModule, PrimExpr

STEP = "tefuse.step"  # the attribute of a function that is the step of a loop


def steps_of(mod: IRModule) -> dict[str, Function]:
    """The functions beside main that are steps of loops, by name."""
    return {
        var.name_hint: func
        for var, func in mod.functions.items()
        if isinstance(func, relax.Function) and _is_step(func) and var.name_hint != "main"
    }


def _is_step(func: Function) -> bool:
    return func.attrs is not None and STEP in func.attrs


def leaves(value: Expr) -> Iterator[Expr]:
    """What a value is made of."""
    if isinstance(value, relax.Call):
        for arg in value.args:
            yield from leaves(arg)
    elif isinstance(value, relax.Tuple):
        for field in value.fields:
            yield from leaves(field)
    elif isinstance(value, relax.TupleGetItem):
        yield from leaves(value.tuple_value)
    else:
        yield value


def is_op(value: Expr | None, name: str) -> bool:
    """Whether it is a call of an op of Relax."""
    return isinstance(value, relax.Call) and getattr(value.op, "name", "") == f"relax.{name}"


def array_of(expr: Expr) -> np.ndarray | None:
    """What a constant holds; None for any other."""
    return constant_numpy(expr) if isinstance(expr, Constant) else None


def size_one(expr: Expr) -> bool:
    """Whether it has one element."""
    return expr.ty.ndim == 0 or set(static_shape(expr)) == {1}


def static_shape(expr: Expr) -> list[int]:
    """Extents; none where one is not known."""
    extents = open_shape(expr)
    return [] if any(not isinstance(e, int) for e in extents) else extents


def open_shape(expr: Expr) -> list[PrimExpr]:
    """Extents as far as they are known: numbers, and expressions of open sizes."""
    ty = expr.ty
    if not isinstance(ty, relax.TensorType) or not isinstance(ty.shape, relax.ShapeExpr):
        return []
    return [int(e.value) if hasattr(e, "value") else e for e in ty.shape.values]


def plain_numbers(arg: Expr) -> list[int]:
    """The integers in an argument that is a tuple; none where one is not known."""
    fields = arg.fields if isinstance(arg, relax.Tuple) else []
    inner = [getattr(field, "value", None) for field in fields]
    plain = [getattr(number, "value", number) for number in inner]  # 0.26: in a PrimValue
    found = [number for number in plain if isinstance(number, int)]
    return found if len(found) == len(plain) else []
