"""Relay: main, rewritten (ir/rewriting.py)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from tvm import relay

from ...tvm import attrs_dict, constant_numpy, tvm
from ...tvm.types import Attr, Expr, PrimExpr, Type
from ..rewriting import Made, Rewriting, as_it_was
from .emit import constant, emit_call
from .walk import postorder, rebuild


def rewritten(
    mod: tvm.IRModule, rewriting: Rewriting, *, keeps_types: bool = False
) -> tvm.IRModule:
    """The typed module with main as a rewriting has it; itself where that changes nothing.
    `keeps_types`: results that are of other dtypes then are cast to those that they had.
    """
    editor, main = _Editor(rewriting), mod["main"]
    body = editor.visited(main.body)
    return with_main(mod, as_it_was(editor, main.body, body) if keeps_types else body)


def with_main(mod: tvm.IRModule, body: Expr) -> tvm.IRModule:
    """A module whose main returns something else, typed; itself where that is the same."""
    main = mod["main"]
    if body.same_as(main.body):
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    known = relay.Function(main.params, body, main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), known)
    return relay.transform.InferType()(done)


def has_branches(mod: tvm.IRModule) -> bool:
    """Whether main takes one way or another."""
    return any(isinstance(expr, relay.If) for expr in postorder(mod["main"].body))


def ops_in(mod: tvm.IRModule) -> set[str]:
    """The names of main's ops, as a rewriting has them."""
    return {str(name) for name in relay.analysis.list_op_freqs(mod)}


class _Editor:
    def __init__(self, rewriting: Rewriting) -> None:
        self.rewriting = rewriting
        self.new: dict[Expr, Expr] = {}
        self.span: Any = None  # of the call at hand: what is written for it has its name

    def visited(self, body: Expr) -> Expr:
        """An expression over what the rewriting makes."""
        for expr in postorder(body):
            self.new[expr] = self._visited(expr)
        return self.new[body]

    def _visited(self, expr: Expr) -> Expr:
        if isinstance(expr, relay.TupleGetItem):
            return self.item(self.new[expr.tuple_value], expr.index, expr)
        found = None
        if isinstance(expr, relay.Call):
            self.span = expr.span
            found = self.rewriting(_read(expr, [self.new[arg] for arg in expr.args]), self)
        return rebuild(expr, self.new) if found is None else found

    def made(self, x: Expr) -> Made | None:
        return _read(x, x.args) if isinstance(x, relay.Call) else None

    def source(self, x: Expr) -> Made | None:
        is_first = isinstance(x, relay.TupleGetItem) and x.index == 0
        return self.made(x.tuple_value if is_first else x)

    def fields(self, x: Expr) -> list[Expr] | None:
        return list(x.fields) if isinstance(x, relay.Tuple) else None

    def array(self, x: Expr) -> np.ndarray | None:
        return constant_numpy(x) if isinstance(x, relay.Constant) else None

    def shape(self, x: Expr) -> list[PrimExpr] | None:
        ty = type_of(x)
        if not isinstance(ty, relay.TensorType):
            return None
        return [int(e) if isinstance(e, tvm.tir.IntImm) else None for e in ty.shape]

    def is_tensor(self, x: Expr) -> bool:
        return isinstance(type_of(x), relay.TensorType)

    def dtypes(self, x: Expr) -> list[str]:
        return _dtypes(type_of(x))

    def item(self, x: Expr, index: int, before: Expr | None = None) -> Expr:
        """An item, `before` where nothing changed; the field of a tuple that is written out."""
        if isinstance(x, relay.Tuple):
            return x.fields[index]
        if before is not None and before.tuple_value.same_as(x):
            return before
        return relay.TupleGetItem(x, index, None if before is None else before.span)

    def joined(self, fields: Sequence[Expr]) -> Expr:
        return relay.Tuple(list(fields))

    def constant(self, array: np.ndarray) -> Expr:
        return constant(array)

    def emit(self, kind: str, *args: Expr, **attrs: Attr) -> Expr:
        return self._named(emit_call(kind, list(args), attrs))

    def call(self, name: str, *args: Expr, **attrs: Attr) -> Expr:
        return self._named(attrgetter(name)(relay)(*args, **attrs))

    def again(self, made: Made, args: Sequence[Expr], **changed: Attr) -> Expr:
        call, attrs = made.call, made.call.attrs
        if changed:
            attrs = tvm.ir.make_node(call.op.attrs_type_key, **{**made.raw, **changed})
        return relay.Call(call.op, list(args), attrs, span=self.span)  # types are inferred anew

    def _named(self, x: Expr) -> Expr:
        if not isinstance(x, relay.Call) or self.span is None:
            return x
        return relay.Call(x.op, x.args, x.attrs, x.type_args, self.span)


def _read(call: relay.Call, args: Sequence[Expr]) -> Made:
    name = call.op.name if isinstance(call.op, tvm.ir.Op) else ""
    return Made(name, tuple(args), tuple(call.args), call, attrs_dict)


def type_of(x: Expr) -> Type:
    """As inferred, or inferred now, for which 0.17 makes a module, of a typed expression, too."""
    return x._checked_type_ or relay.transform.InferTypeLocal(x)


def _dtypes(ty: Type) -> list[str]:
    if isinstance(ty, relay.TupleType):
        return [each for field in ty.fields for each in _dtypes(field)]
    return [str(ty.dtype)] if isinstance(ty, relay.TensorType) else []
