"""Names of the source model as spans, which Relax's frontends do not write."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from ...tvm import tvm
from ...tvm.types import Expr, IRModule


def with_spans(mod: IRModule, names: Mapping[Expr, str]) -> IRModule:
    """The module whose calls, or the variables that they are bound to, have these names."""
    by_call = {
        binding.value: names.get(binding.var) or names.get(binding.value)
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    }
    mutator = _Spans({call: name for call, name in by_call.items() if name})
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), mutator.visit_expr(mod["main"]))
    return done


@relax.expr_functor.mutator
class _Spans(relax.PyExprMutator):
    def __init__(self, names: Mapping[Expr, str]) -> None:
        super().__init__()
        self.names = names

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        done = super().visit_call_(call)
        name = self.names.get(call)
        if name is None or not isinstance(done, relax.Call):
            return done
        span = tvm.ir.Span(tvm.ir.SourceName(name), 0, 0, 0, 0)
        types = done.ty_args if hasattr(done, "ty_args") else done.sinfo_args
        return relax.Call(done.op, done.args, done.attrs, types, span)
