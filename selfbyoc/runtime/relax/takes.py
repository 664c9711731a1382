"""Relax: no take in TVM's "fast" mode, which warns about itself on stderr each time that one is
lowered (32 lines for a bicubic resize, 0.27). What it would do otherwise, `within_buffers` does.
"""

from __future__ import annotations

from tvm import relax

from ...tvm import tvm


@tvm.transform.module_pass(opt_level=0, name="ClippedTakes")
def clipped_takes(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """The pass."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        if isinstance(func, relax.Function):
            done.update_func(gv, _ClippedTakes().visit_expr(func))
    return done


@relax.expr_functor.mutator
class _ClippedTakes(relax.PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        done = super().visit_call_(call)
        if getattr(done.op, "name", "") != "relax.take" or done.attrs.mode != "fast":
            return done
        return relax.op.take(*done.args, axis=done.attrs.axis, mode="clip")
