"""Relax: a module's constants."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from ...ir.relax import Constant
from ...tvm import tvm
from ...tvm.types import Expr, NDArray


def is_constant(node: Expr) -> bool:
    """Whether a node of the IR is a constant tensor."""
    return isinstance(node, Constant)


def callee(node: Expr) -> str:
    """The function of the module that a node of `main` calls, or nothing."""
    is_call = isinstance(node, relax.Call) and isinstance(node.op, tvm.ir.GlobalVar)
    return str(node.op.name_hint) if is_call else ""


def replaced(mod: tvm.IRModule, new: Mapping[Expr, NDArray]) -> tvm.IRModule:
    """The module with other tensors for some constants of `main`."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), _Replaced(new).visit_expr(mod["main"]))
    return done


@relax.expr_functor.mutator
class _Replaced(relax.PyExprMutator):
    def __init__(self, new: Mapping[Expr, NDArray]) -> None:
        super().__init__()
        self.new = new

    def visit_constant_(self, constant: relax.Expr) -> relax.Expr:
        return relax.const(self.new[constant]) if constant in self.new else constant

    visit_generic_const_ = visit_constant_  # so it is called from 0.27 on
