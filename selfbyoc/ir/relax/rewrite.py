"""Relax: main, rewritten (ir/rewriting.py)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from tvm import relax

from ...tvm import constant_numpy, tvm
from ...tvm.types import Attr, AttrsNode, Expr, Op, PrimExpr, Type
from ..rewriting import Made, Rewriting, as_it_was
from . import Attributes, Constant
from .emit import constant, emitted


def rewritten(
    mod: tvm.IRModule, rewriting: Rewriting, *, keeps_types: bool = False
) -> tvm.IRModule:
    """The normalised module with main as a rewriting has it; itself where that changes nothing.
    `keeps_types`: results that are of other dtypes then are cast to those that they had.
    """
    editor, main = _Editor(rewriting), mod["main"]
    func = editor.visit_expr(main)
    if not editor.is_changed:
        return mod
    if keeps_types:
        func = editor.returning(func, main)
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    done.update_func(done.get_global_var("main"), func)
    return relax.transform.CanonicalizeBindings()(done)


def has_branches(mod: tvm.IRModule) -> bool:
    """Whether main takes one way or another."""
    bindings = (binding for block in mod["main"].body.blocks for binding in block.bindings)
    return any(isinstance(binding.value, relax.If) for binding in bindings)


def ops_in(mod: tvm.IRModule) -> set[str]:
    """The names of main's ops, as a rewriting has them."""
    found: set[str] = set()

    def note(expr: Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            found.add(_name(expr.op))

    relax.analysis.post_order_visit(mod["main"], note)
    return found


@relax.expr_functor.mutator
class _Editor(relax.PyExprMutator):
    def __init__(self, rewriting: Rewriting) -> None:
        super().__init__()
        self.rewriting, self.is_changed = rewriting, False
        self.span: Any = None  # of the call at hand: what is written for it has its name

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """A call, or what stands for it."""
        # No super: it would infer the type of a call whose inputs a rewriting has yet to mend.
        made = _read(call, [self.visit_expr(arg) for arg in call.args])
        self.span = call.span
        found = self.rewriting(made, self)
        if found is not None:
            self.is_changed = True
            return found
        return _like(call, self._function(call.op), made.args, call.attrs)

    def _function(self, op: Op) -> Expr:
        return op if isinstance(op, tvm.ir.Op) else self.visit_expr(op)

    def visit_tuple_getitem_(self, item: relax.TupleGetItem) -> relax.Expr:
        """An item; the field itself of a tuple that is written out."""
        done = super().visit_tuple_getitem_(item)
        fields = self.fields(done.tuple_value) if isinstance(done, relax.TupleGetItem) else None
        return done if fields is None else fields[done.index]

    def returning(self, func: relax.Function, before: relax.Function) -> relax.Function:
        """A function that returns what it did."""
        self.span = None
        self.builder_._begin_binding_block()
        body = func.body.body
        if isinstance(body, relax.Var) and isinstance(body.ty, relax.TupleType):
            # The fields that it is bound to are variables of a dataflow block, unknown here.
            body = self.joined([self.item(body, n) for n in range(len(body.ty.fields))])
        body = as_it_was(self, before.body.body, body)
        casts = self.builder_._end_block()
        blocks = [*func.body.blocks, *([casts] if casts.bindings else [])]
        seq = relax.SeqExpr(blocks, body)
        return relax.Function(func.params, seq, before.ret_ty, attrs=func.attrs)

    def _bound(self, x: Expr) -> Expr:
        """What a variable stands for; anything else, and a parameter, is itself."""
        while isinstance(x, relax.Var):
            found = self.builder_.lookup_binding(x)
            if found is None:
                return x
            x = found
        return x

    def made(self, x: Expr) -> Made | None:
        found = self._bound(x)
        return _read(found, found.args) if isinstance(found, relax.Call) else None

    def source(self, x: Expr) -> Made | None:
        found = self._bound(x)
        is_first = isinstance(found, relax.TupleGetItem) and found.index == 0
        return self.made(found.tuple_value if is_first else found)

    def fields(self, x: Expr) -> list[Expr] | None:
        found = self._bound(x)
        return list(found.fields) if isinstance(found, relax.Tuple) else None

    def array(self, x: Expr) -> np.ndarray | None:
        return constant_numpy(x) if isinstance(x, Constant) else None

    def shape(self, x: Expr) -> list[PrimExpr] | None:
        ty = getattr(x, "ty", None)
        if not isinstance(ty, relax.TensorType):
            return None
        if ty.ndim == 0:
            return []
        if not isinstance(ty.shape, relax.ShapeExpr):
            return None
        return [int(e.value) if hasattr(e, "value") else e for e in ty.shape.values]

    def is_tensor(self, x: Expr) -> bool:
        return isinstance(getattr(x, "ty", None), relax.TensorType)

    def dtypes(self, x: Expr) -> list[str]:
        return _dtypes(getattr(x, "ty", None))

    def item(self, x: Expr, index: int) -> Expr:
        return self._emit(relax.TupleGetItem(x, index))

    def joined(self, fields: Sequence[Expr]) -> Expr:
        return relax.Tuple(list(fields))

    def constant(self, array: np.ndarray) -> Expr:
        return constant(array)

    def emit(self, kind: str, *args: Expr, **attrs: Attr) -> Expr:
        return self._emit(emitted(self.builder_, kind, args, attrs))

    def call(self, name: str, *args: Expr, **attrs: Attr) -> Expr:
        return self._emit(attrgetter(name)(relax.op)(*args, **attrs))

    def again(self, made: Made, args: Sequence[Expr], **changed: Attr) -> Expr:
        attrs = made.call.attrs
        if changed:
            # Of some ops, as matmul, 0.27 does not say what their attributes are.
            key = type(attrs).__tvm_ffi_type_info__.type_key
            attrs = tvm.ir.attrs.make_node(key, **{**made.raw, **changed})
        return self._emit(relax.Call(made.call.op, list(args), attrs, made.call.ty_args))

    def _emit(self, x: Expr) -> Expr:
        if isinstance(x, relax.Call) and self.span is not None:
            x = relax.Call(x.op, x.args, x.attrs, x.ty_args, self.span)
        return self.builder_.emit(self.builder_.normalize(x))


def _name(op: Op) -> str:
    return str(op.name).removeprefix("relax.")


def _read(call: relax.Call, args: Sequence[Expr]) -> Made:
    name = _name(call.op) if isinstance(call.op, tvm.ir.Op) else ""
    return Made(name, tuple(args), tuple(call.args), call, Attributes)


def _like(call: relax.Call, op: Op, args: Sequence[Expr], attrs: AttrsNode) -> relax.Call:
    same = op is call.op and all(a is b for a, b in zip(args, call.args, strict=True))
    return call if same else relax.Call(op, list(args), attrs, call.ty_args, call.span)


def _dtypes(ty: Type) -> list[str]:
    if isinstance(ty, relax.TupleType):
        return [each for field in ty.fields for each in _dtypes(field)]
    return [str(ty.dtype)] if isinstance(ty, relax.TensorType) else []
