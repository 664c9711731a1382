"""What a block does to what it writes: a sum, a copy, a padded copy, or anything else."""

from __future__ import annotations

from typing import Any

from ...tvm import is_reduction, region_buffer, structural_equal, walk
from ...tvm.own_ops import word_of_dot
from ...tvm.types import Buffer, PrimExpr, Stmt

_LOADS = ("BufferLoad", "TensorLoad")


def role_of(block: Stmt, written: Buffer) -> str:
    """What a block does to what it writes."""
    value = _uncast(_stored(block))
    kind = type(value).__name__
    if any(is_reduction(iv) for iv in block.iter_vars):
        own = [_own_load(operand, written) for operand in _operands(value)]
        return {"Add": "sum", "Max": "max"}.get(kind, "reduce") if any(own) else "reduce"
    if kind in _LOADS:
        return "copy"
    if kind == "Call" and str(value.op.name).endswith("if_then_else"):
        one, other = (type(_uncast(a)).__name__ for a in value.args[1:])
        return "padded copy" if one in _LOADS and other.endswith("Imm") else "compute"
    return "compute"


def _stored(block: Stmt) -> PrimExpr:
    """The value of a block's store."""
    found: list[Any] = []
    walk(block.body, found.append, "BufferStore")
    return found[0].value if found else None


def _uncast(expr: PrimExpr) -> PrimExpr:
    while type(expr).__name__ == "Cast":
        expr = expr.value
    return expr


def _operands(value: PrimExpr) -> list[PrimExpr]:
    return [value.a, value.b] if hasattr(value, "a") and hasattr(value, "b") else []


def _own_load(expr: PrimExpr, written: Buffer) -> bool:
    return type(expr).__name__ in _LOADS and region_buffer(expr).same_as(written)


def products(block: Stmt) -> int:
    """Products that a sum adds at once, of values that are read: levels of a word, or one; a norm's
    squares are not what a product of matrices does.
    """
    for operand in _operands(_stored(block)):
        operand = _uncast(operand)
        if type(operand).__name__ == "Mul":
            square = structural_equal(operand.a, operand.b)
            return int(not square and all(_reads(side) for side in (operand.a, operand.b)))
        if word := word_of_dot(operand):
            return word
    return 0


def _reads(expr: PrimExpr) -> bool:
    found: list[bool] = []
    walk(expr, found.append, *_LOADS)
    return bool(found)
