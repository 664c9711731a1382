"""Index expressions as data: a variable is its name, a constant an int, anything else
`(operator, operand, ...)`.

The variable of an axis that is known to be in a part of its range says so: `i[0:1]`.
Operators of integers are those that a prover computes with. All others begin with "=" and are
opaque: equal ones of equal operands have equal values, and nothing else is known of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping

from ...tvm import dtype_of, region_buffer, tir
from ...tvm.rewrite import OPERATORS
from ...tvm.types import Expr, PrimExpr

_OPAQUE = "="
_LARGEST = 64  # operators of an expression; a larger one is no data
_CALLS = frozenset(
    f"tir.{name}"
    for name in (
        "bitwise_and", "ceil", "floor", "if_then_else", "likely", "nearbyint", "round",
        "shift_left", "shift_right", "trunc",
    )
)  # fmt: skip
_TWO = ("LT", "LE", "GT", "GE", "EQ", "NE", "And", "Or", *OPERATORS, "Div", "Mod")


def encoded(expr: PrimExpr, names: Mapping[PrimExpr, Expr]) -> Expr | None:
    """An index as data, its variables by `names`; None for what is none, or too large."""
    found = _encoded(expr, names)
    return None if found is None or _size(found) > _LARGEST else found


def _encoded(expr: PrimExpr, names: Mapping[PrimExpr, Expr]) -> Expr | None:
    kind = type(expr).__name__
    if kind == "IntImm":
        return int(expr.value)
    if isinstance(expr, tir.Var):
        return names.get(expr)
    is_integer = "int" in dtype_of(expr)
    if kind == "Cast" and is_integer and "int" in dtype_of(expr.value):
        return _encoded(expr.value, names)
    if kind in OPERATORS and is_integer:
        return _of(kind, names, expr.a, expr.b)
    return _opaque(expr, kind, names)


def _opaque(expr: PrimExpr, kind: str, names: Mapping[PrimExpr, Expr]) -> Expr | None:
    if kind == "FloatImm":
        return (f"{_OPAQUE}{float(expr.value)!r}",)
    if kind in _TWO:
        return _of(f"{_OPAQUE}{kind}", names, expr.a, expr.b)
    if kind == "Not":
        return _of(f"{_OPAQUE}{kind}", names, expr.a)
    if kind == "Cast":
        return _of(f"{_OPAQUE}{dtype_of(expr)}", names, expr.value)
    if kind == "Select":
        parts = (expr.condition, expr.true_value, expr.false_value)
        return _of(f"{_OPAQUE}{kind}", names, *parts)
    if kind in ("BufferLoad", "TensorLoad"):
        return _of(f"{_OPAQUE}load {region_buffer(expr).name}", names, *expr.indices)
    name = str(getattr(getattr(expr, "op", None), "name", "")).replace("tirx.", "tir.")
    if kind == "Call" and name in _CALLS:
        return _of(f"{_OPAQUE}{name}", names, *expr.args)
    return None


def _of(operator: str, names: Mapping[PrimExpr, Expr], *operands: PrimExpr) -> Expr | None:
    found = [_encoded(operand, names) for operand in operands]
    return None if None in found else (operator, *found)


def _size(expr: Expr) -> int:
    return 1 + sum(map(_size, expr[1:])) if isinstance(expr, tuple) else 1


def variables(expr: Expr) -> Iterator[str]:
    """The variables in an expression."""
    if isinstance(expr, str):
        yield expr
    elif isinstance(expr, tuple):
        for operand in expr[1:]:
            yield from variables(operand)


_PART = re.compile(r"(.*)\[(-?\d+):(-?\d+)\]")


def in_part(name: str, low: int, high: int) -> str:
    """The variable of an axis that is at least `low`, and less than `high`."""
    return f"{name}[{low}:{high}]"


def part_of(name: str) -> tuple[str, int, int] | None:
    """Of such a variable the axis's own, and both ends; None of any other."""
    found = _PART.fullmatch(name)
    return (found[1], int(found[2]), int(found[3])) if found else None


def substituted(expr: Expr, new: Mapping[str, Expr]) -> Expr:
    """The expression with variables replaced."""
    if isinstance(expr, str):
        part = part_of(expr)
        return new.get(part[0] if part else expr, expr)
    if isinstance(expr, tuple):
        return (expr[0], *(substituted(operand, new) for operand in expr[1:]))
    return expr


def scoped(expr: Expr, label: str) -> Expr:
    """Axis names of different blocks are different variables."""
    if isinstance(expr, str):
        return f"{label}/{expr}"
    if isinstance(expr, tuple):
        return (expr[0], *(scoped(operand, label) for operand in expr[1:]))
    return expr


def decoded(expr: Expr, env: MutableMapping[Expr, PrimExpr]) -> PrimExpr:
    """The expression as TIR over the given variables; what is opaque becomes one of them."""
    if isinstance(expr, int):
        return tir.IntImm("int32", expr)
    if isinstance(expr, str):
        return env[expr]
    if expr[0] in OPERATORS:
        return OPERATORS[expr[0]](decoded(expr[1], env), decoded(expr[2], env))
    if expr not in env:
        env[expr] = tir.Var("opaque", "int32")
    return env[expr]
