"""Relax: shapes inside the external functions that use them, of symbols that their tensors have.

FuseOpsByPattern (0.27) passes a shape with a symbol, as of a reshape, as an argument; its extents
are those of the tensors, and a kernel takes tensors only. Where no tensor has `batch` alone, and
all have `batch * 17`, that is the symbol.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tvm_ffi
from tvm import relax

from ...ir.relax.symbols import extents_of, symbols, text_of
from ...tvm import Analyzer, structural_equal, tir
from ...tvm.rewrite import substitute, variables_in
from ...tvm.types import Expr, PrimExpr


def takes_shapes(func: relax.Function) -> bool:
    """Whether a function has a shape for a parameter."""
    return any(_is_shape(param) for param in func.params)


def _is_shape(param: Expr) -> bool:
    return isinstance(param.ty, relax.ShapeType)


def with_shapes_inside(func: relax.Function) -> relax.Function:
    """The same function, and those inside of it, with the shapes written where they are used."""
    inside = _Inside()
    for param in func.params:
        if _is_shape(param):
            inside.known[param] = relax.ShapeExpr(list(param.ty.values))
    kept = [param for param in func.params if not _is_shape(param)]
    body = inside.visit_expr(func.body)
    return relax.Function(kept, body, func.ret_ty, func.is_pure, func.attrs)


def with_extents_alone(func: relax.Function) -> relax.Function:
    """The same function with a symbol for each extent of a parameter that is computed from what no
    parameter has for an extent alone; a multiple of one is that of its symbol.
    """
    known = set(symbols(func).values())
    new: list[tuple[Any, Any]] = []
    for extent in (e for param in func.params for e in extents_of(param.ty)):
        is_new = not any(structural_equal(extent, other) for other, _ in new)
        if is_new and not variables_in(extent) <= known:
            name = re.sub(r"\W+", "_", text_of(extent)).strip("_")
            new.append((extent, tir.Var(name, "int64")))

    def changed(node: PrimExpr) -> PrimExpr:
        times = ((var, _times(node, extent)) for extent, var in new)
        return next((var * n if n > 1 else var for var, n in times if n), node)

    kinds = {type(extent) for extent, _ in new}
    return tvm_ffi.structural_map(func, tuple((kind, changed) for kind in kinds)) if new else func


def _times(whole: PrimExpr, part: PrimExpr) -> int:
    """How often a part is in an extent, both of symbols; 0 where that is no whole number."""
    if structural_equal(whole, part):
        return 1
    if variables_in(whole) != variables_in(part):
        return 0
    at = {var: tir.IntImm("int64", 2 * 3 * 5 * 7) for var in variables_in(part)}
    a, b = (Analyzer().simplify(substitute(extent, at)) for extent in (whole, part))
    if not all(isinstance(n, tir.IntImm) for n in (a, b)) or int(b) < 1 or int(a) % int(b):
        return 0
    count = int(a) // int(b)
    return count if Analyzer().can_prove_equal(whole, part * count) else 0


def tensors(args: Sequence[Expr]) -> list[Expr]:
    """The arguments that are no shapes."""
    return [arg for arg in args if not isinstance(arg.ty, relax.ShapeType)]


@relax.expr_functor.mutator
class _Inside(relax.PyExprMutator):
    """Shapes for variables of them, and functions without such parameters for those with."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def visit_var_(self, var: relax.Var) -> relax.Expr:
        return self.known.get(var) or super().visit_var_(var)

    def visit_function_(self, func: relax.Function) -> relax.Function:
        return with_shapes_inside(func) if takes_shapes(func) else func

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if not isinstance(call.op, relax.Var):  # an op takes its shape
            return super().visit_call_(call)
        args = [self.visit_expr(arg) for arg in tensors(call.args)]
        return relax.Call(self.visit_expr(call.op), args, call.attrs)
