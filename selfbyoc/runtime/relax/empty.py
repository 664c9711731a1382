"""Relax: constants of no element, which 0.27's virtual machine cannot load ("Invalid DLTensor file
format"): memory of that shape instead. Frontends write them, and folding makes them of what an op
fills.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from ...ir.relax import Constant
from ...tvm import constant_tensor, tvm
from ...tvm.types import Expr, Function


def without_empty_constants(mod: tvm.IRModule) -> tvm.IRModule:
    """The module as it is, or with calls that allocate in place of these constants."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        if isinstance(func, relax.Function) and _has_some(func):
            done.update_func(gv, _Allocated().visit_expr(func))
    return relax.transform.Normalize()(done)


def _has_some(func: Function) -> bool:
    found: list[Any] = []

    def visit(node: Expr) -> None:
        if _is_empty(node):
            found.append(node)

    relax.analysis.post_order_visit(func, visit)
    return bool(found)


def _is_empty(node: Expr) -> bool:
    return isinstance(node, Constant) and 0 in constant_tensor(node).shape


@relax.expr_functor.mutator
class _Allocated(relax.PyExprMutator):
    def visit_constant_(self, constant: Expr) -> Expr:
        if not _is_empty(constant):
            return constant
        tensor = constant_tensor(constant)
        shape = relax.ShapeExpr([int(extent) for extent in tensor.shape])
        return relax.op.builtin.alloc_tensor(shape, str(tensor.dtype), 0)
