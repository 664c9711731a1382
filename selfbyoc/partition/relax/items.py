"""Relax: items of tuples as calls, for FuseOpsByPattern."""

from __future__ import annotations

from tvm import relax

from ...ir.relax import ITEM
from ...tvm import tvm


@relax.expr_functor.mutator
class ItemsAreCalls(relax.PyExprMutator):
    """An identity after each item of a tuple: FuseOpsByPattern (0.27) looks for roots among calls
    only, so that batch_norm(...)[0] could not be one.
    """

    def visit_tuple_getitem_(self, item: relax.TupleGetItem) -> relax.Expr:
        taken = super().visit_tuple_getitem_(item)
        return relax.op.grad.no_grad(self.builder_.emit(taken))


@relax.expr_functor.mutator
class WithoutItemCalls(relax.PyExprMutator):
    """Takes the identities out again where no composite holds them."""

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if isinstance(call.op, tvm.ir.Op) and call.op.name == f"relax.{ITEM}":
            return self.visit_expr(call.args[0])
        return super().visit_call_(call)


@relax.expr_functor.mutator
class ItemsOfTuples(relax.PyExprMutator):
    """Reads what a tuple was made of, where that is known."""

    def visit_tuple_getitem_(self, item: relax.TupleGetItem) -> relax.Expr:
        of = self.visit_expr(item.tuple_value)
        made = self.lookup_binding(of) if isinstance(of, relax.Var) else of
        if isinstance(made, relax.Tuple):
            return made.fields[item.index]
        return super().visit_tuple_getitem_(item)
