"""Calls of a model's own PrimFuncs that a user declared to be ops: read as these ops."""

from __future__ import annotations

from tvm import relax

from ...errors import OpError
from ...ir.relax.emit import function_of
from ...ops.vocabulary import KINDS
from ...tvm import structural_equal, tvm


@relax.expr_functor.mutator
class PrimFuncsAreOps(relax.PyExprMutator):
    """The op in place of call_tir of the function that `declare(..., primfunc=)` names."""

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        done = super().visit_call_(call)
        if not isinstance(done.op, tvm.ir.Op) or done.op.name != "relax.call_tir":
            return done
        called = str(done.args[0].name_hint)
        kind = next((k for k in KINDS.values() if k.primfunc == called), None)
        return done if kind is None else self._op(kind.name, done)

    def _op(self, kind: str, call: relax.Call) -> relax.Expr:
        args = (
            list(call.args[1].fields) if isinstance(call.args[1], relax.Tuple) else [call.args[1]]
        )
        wanted, write = KINDS[kind].inputs, function_of(kind)
        assert write is not None
        if wanted not in (None, len(args)):
            text = f"op {kind}: the PrimFunc {KINDS[kind].primfunc} takes {len(args)} tensors"
            raise OpError(f"{text}; the op was declared with inputs={wanted}")
        made = self.builder_.normalize(write(*args, **KINDS[kind].attrs))
        if not structural_equal(made.ty, call.ty):
            text = f"op {kind}: the PrimFunc {KINDS[kind].primfunc} returns {call.ty}"
            raise OpError(f"{text}, the op as it was declared {made.ty}")
        return made
