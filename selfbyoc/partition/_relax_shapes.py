"""Relax: shapes inside the external functions that use them.

FuseOpsByPattern (0.27) passes a shape with a symbol, as of a reshape, as an argument; its extents
are those of the tensors, and a kernel takes tensors only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax


def takes_shapes(func: relax.Function) -> bool:
    """Whether a function has a shape for a parameter."""
    return any(_is_shape(param) for param in func.params)


def _is_shape(param: Any) -> bool:
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


def tensors(args: Sequence[Any]) -> list[Any]:
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
