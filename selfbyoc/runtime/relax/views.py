"""Relax: a reshape that is the result of a block is its operand's memory, with another shape. TVM
makes views of those inside of a dataflow block alone (0.27, RewriteDataflowReshape) and copies the
last one: 3 MB for 40 x 18710 probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm import relax

from ...tvm import tir, tvm
from ...tvm.types import Expr, Function

KERNELS = ("relax.call_tir", "relax.call_dps_packed")  # they write memory of their own


@tvm.transform.module_pass(opt_level=0, name="LastReshapesAreViews")
def last_reshapes_are_views(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """The module, with a view for each reshape that a block hands out of what a kernel computed for
    it alone.
    """
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        found = list(_reshapes(func, mod)) if isinstance(func, relax.Function) else []
        if found:
            done.update_func(gv, _Views(found).visit_expr(func))
    return done


def _reshapes(func: Function, mod: tvm.IRModule) -> Iterator[Expr]:
    """The calls. What is a result itself, or an argument, is copied: two results, or a result and
    an argument, are never one memory.
    """
    for block in getattr(func.body, "blocks", ()):
        own: list[Any] = []
        for binding in block.bindings:
            value: Any = getattr(binding, "value", None)
            if isinstance(binding.var, relax.DataflowVar):
                own += [binding.var] if _kernel(value) else []
            elif _is_reshape(value, mod):
                shown = [var for var in own if value.args[1][0].same_as(var)]
                own = [var for var in own if var not in shown]  # the next one is a copy
                yield from [value] if shown else []


def _kernel(value: Expr) -> str:
    """The op that calls one, or ''."""
    name = getattr(value.op, "name", "") if isinstance(value, relax.Call) else ""
    return name if name in KERNELS else ""


def _is_reshape(value: Expr, mod: tvm.IRModule) -> bool:
    if _kernel(value) != "relax.call_tir" or len(value.args) > 2 or len(value.args[1]) != 1:
        return False
    func = mod[value.args[0]]
    return isinstance(func, tir.PrimFunc) and relax.analysis.has_reshape_pattern(func)


@relax.expr_functor.mutator
class _Views(relax.PyExprMutator):
    def __init__(self, reshapes: list[Expr]) -> None:
        super().__init__()
        self.reshapes = reshapes

    def visit_call_(self, call: Expr) -> Expr:
        if not any(call.same_as(one) for one in self.reshapes):
            return call
        viewed = self.visit_expr(call.args[1][0])
        return relax.call_pure_packed("vm.builtin.reshape", viewed, call.ty.shape, ty_args=call.ty)
