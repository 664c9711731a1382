"""Relax: the body of a function in place of a call of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tvm import relax

from ...ir.relax import ITEM
from ...tvm import tvm
from ...tvm.types import BlockBuilder, Expr

# From a function and its arguments to what stands for some of its variables.
Given = Callable[[relax.Function, Sequence[Expr]], dict[Expr, Expr]]
# From an op's call, and the way to its arguments in the caller, to what does it.
Alone = Callable[[relax.Call, Callable[[Expr], Expr]], Expr]


def inlined(
    mod: tvm.IRModule, names: Collection[str], given: Given, alone: Alone | None = None
) -> relax.Function:
    """main with the ops of these functions in place of calls of them, each done by `alone`."""
    return _Inlined(mod, names, given, alone).visit_expr(mod["main"])


@relax.expr_functor.mutator
class _Inlined(relax.PyExprMutator):
    def __init__(
        self, mod: tvm.IRModule, names: Collection[str], given: Given, alone: Alone | None
    ) -> None:
        super().__init__()
        self.mod, self.names, self.given, self.alone = mod, names, given, alone

    def visit_call_(self, call: relax.Call) -> Expr:
        call = super().visit_call_(call)
        if getattr(call.op, "name_hint", None) not in self.names:
            return call
        func = self.mod[call.op.name_hint]
        new = dict(zip(func.params, call.args, strict=True)) | self.given(func, call.args)
        return _Copy(self.builder_, new, self.alone).of(func.body)


def primitives(mod: tvm.IRModule) -> list[str]:
    """The names of the primitive functions that are nobody's: neither composites nor external."""
    found = []
    for var, func in mod.functions.items():
        names = list(map(str, func.attrs.keys())) if func.attrs else []
        is_ours = isinstance(func, relax.Function) and "Primitive" in names
        if is_ours and "Composite" not in names and "Codegen" not in names:
            found.append(var.name_hint)
    return found


def is_op(value: Expr) -> bool:
    return isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op)


class _Copy:
    """The bindings of a function, and of those inside it, emitted into another one."""

    def __init__(self, builder: BlockBuilder, new: dict[Expr, Expr], alone: Alone | None) -> None:
        self.builder, self.new, self.alone = builder, new, alone
        self.given = frozenset(new)
        self.inside: dict[Expr, relax.Function] = {}

    def of(self, body: relax.SeqExpr) -> Expr:
        """Emit all of it; -> what stands for its result."""
        for block in body.blocks:
            for binding in block.bindings:
                if binding.var not in self.given:
                    self._bind(binding.var, binding.value)
        return self._over(body.body)

    def _bind(self, var: relax.Var, value: Expr) -> None:
        if isinstance(value, relax.Function):
            self.inside[var] = value
        elif isinstance(value, relax.Call) and value.op in self.inside:
            inner = self.inside[value.op]
            self.new.update(zip(inner.params, map(self._over, value.args), strict=True))
            self.new[var] = self.of(inner.body)
        elif self.alone is not None and is_op(value) and value.op.name != f"relax.{ITEM}":
            self.new[var] = self.builder.emit(self.alone(value, self._over))
        else:
            over = self._over(value)
            self.new[var] = self.builder.emit(over) if isinstance(over, relax.Call) else over

    def _over(self, expr: Expr) -> Expr:
        """An expression over the new variables."""
        if isinstance(expr, relax.Var):
            return self.new[expr]
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._over(field) for field in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            whole = self._over(expr.tuple_value)
            is_written = isinstance(whole, relax.Tuple)
            return whole.fields[expr.index] if is_written else relax.TupleGetItem(whole, expr.index)
        if isinstance(expr, relax.Call):
            args = [self._over(arg) for arg in expr.args]
            return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
        return expr
