"""Choices: those known once loops are unrolled, the sign of a dividend, the larger of two."""

from __future__ import annotations

from . import GENERATION, dtype_of, tir
from .types import PrimExpr, PrimFunc

if GENERATION == "relax":
    import tvm_ffi


def without_decided(func: PrimFunc) -> PrimFunc:
    """A lowered PrimFunc where a Select among vectors whose condition is known is what it selects.

    TVM folds those of scalars only, and a Select reads both sides: of a window's tap in the padding
    an element outside of the buffer.
    """

    def chosen(select: PrimExpr) -> PrimExpr:
        condition = select.condition
        if isinstance(condition, tir.Broadcast):
            condition = condition.value
        if not isinstance(condition, tir.IntImm):
            return select
        return select.true_value if int(condition) else select.false_value

    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.Select, chosen),))
    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, chosen, ["tir.Select"]))


def without_truncation(func: PrimFunc) -> PrimFunc:
    """A PrimFunc whose integers are divided by constants rounding down, with the signs apart.

    Of a vector, TVM's simplifier (0.17 and 0.27) takes `(5 - 3 * lane) / 3` for `1 - lane`, as if
    C's division rounded down: an average over a dilated window counted one pixel too many.
    """

    def divided(node: PrimExpr) -> PrimExpr:
        if not (dtype_of(node).startswith("int") and isinstance(node.b, tir.IntImm)):
            return node
        if isinstance(node.a, tir.IntImm) or int(node.b) <= 0:
            return node
        a, b = node.a, node.b
        whole = tir.Select(a < 0, -tir.floordiv(-a, b), tir.floordiv(a, b))
        return whole if type(node).__name__ == "Div" else a - whole * b

    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.Div, divided), (tir.Mod, divided)))
    body = tir.stmt_functor.ir_transform(func.body, None, divided, ["tir.Div", "tir.Mod"])
    return func.with_body(body)


def without_max_min(func: PrimFunc) -> PrimFunc:
    """A PrimFunc with Select for Max and Min: TVM's C codegen gets these two wrong.

    It keeps their operands by text and uses them again within a scope, even when the buffer that
    they were read from has been written since (SSAGetID in CodeGenC, 0.17 and 0.27).
    """

    def select(expr: PrimExpr) -> PrimExpr:
        larger = type(expr).__name__ == "Max"
        return tir.Select(expr.a > expr.b if larger else expr.a < expr.b, expr.a, expr.b)

    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.Max, select), (tir.Min, select)))
    body = tir.stmt_functor.ir_transform(func.body, None, select, ["tir.Max", "tir.Min"])
    return func.with_body(body)
