"""Relax: an op of one's own, registered from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import relax

from ...graph import OpCall
from ...ops.kind import Typed
from ...ops.vocabulary import KINDS, attrs_of
from ...tvm import GENERATION, attrs_dict, tvm
from ...tvm.types import Attrs, BlockBuilder, Expr, Type
from . import _values

__all__ = ["GENERATION", "call_of", "known_ops", "register"]

Rule = Callable[[Sequence[Typed], Mapping[str, Any]], Sequence[Typed]]

PREFIX = "relax."
_rules: dict[str, Rule] = {}


def known_ops() -> list[str]:
    """The names of all ops of this TVM, without their prefix."""
    names = (str(name) for name in tvm.ir.Op.list_op_names())
    return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]


def register(name: str, kind: str, rule: Rule) -> None:
    """An op of this name in TVM: the types of its results, by those of its inputs, and the PrimFunc
    that it becomes. What a kind says is looked up when it is asked for, so that it may be declared
    again.
    """
    known = name in _rules
    _rules[name] = rule
    if known:
        return
    tvm.ir._ffi_api.RegisterOp(f"{PREFIX}{name}", "declared in Python")
    op = tvm.ir.Op.get(f"{PREFIX}{name}")
    op.set_attrs_type_key("ir.DictAttrs")
    op.set_attr("FInferType", lambda call, ctx: _type(name, kind, call))
    op.set_attr("FLegalize", lambda builder, call: _legalized(kind, builder, call))
    op.set_attr("FPurity", True)


def _type(name: str, kind: str, call: relax.Call) -> Type:
    fields = [ty for arg in call.args for ty in getattr(arg.ty, "fields", [arg.ty])]
    found = _rules[name]([_typed(ty) for ty in fields], attrs_of(kind, attrs_dict(call.attrs)))
    types = [relax.TensorType(shape, dtype) for shape, dtype in found]
    return types[0] if len(types) == 1 else relax.TupleType(types)


def _typed(ty: Type) -> Typed:
    """A tensor's type; an open size is the expression that TVM has for it."""
    (value,) = _values(ty)
    extents = zip(value.shape, ty.shape, strict=True) if getattr(ty, "shape", None) else ()
    return tuple(e if known is None else known for known, e in extents), value.dtype


def _legalized(kind: str, builder: BlockBuilder, call: relax.Call) -> Expr:
    made = OpCall(kind, (), attrs_of(kind, attrs_dict(call.attrs)), _values(call.ty), kind)
    compute = KINDS[kind].compute
    assert compute is not None
    args = [field for arg in call.args for field in _fields(arg)]
    return builder.call_te(lambda *ins: compute(ins, made), *args, primfunc_name_hint=kind)


def _fields(arg: Expr) -> list[Expr]:
    if isinstance(arg, relax.Tuple):
        return list(arg.fields)
    if isinstance(arg.ty, relax.TupleType):
        return [relax.TupleGetItem(arg, i) for i in range(len(arg.ty.fields))]
    return [arg]


def call_of(name: str, args: Sequence[Expr], attrs: Attrs, *, is_list: bool) -> Expr:
    """A call of an op by its name."""
    op = tvm.ir.Op.get(f"{PREFIX}{name}")
    made = tvm.ir.attrs.make_node(op.attrs_type_key or "ir.DictAttrs", **attrs) if attrs else None
    return relax.Call(op, [relax.Tuple(list(args))] if is_list else list(args), made)
