"""Relay: an op of one's own, registered from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import relay, topi
from tvm.relay.op import op as registry
from tvm.relay.op._tensor import elemwise_shape_func
from tvm.relay.op.strategy.generic import schedule_injective

from ...graph import OpCall
from ...ops.kind import Typed
from ...ops.vocabulary import KINDS, attrs_of
from ...tvm import GENERATION, attrs_dict, tvm
from ...tvm.types import Attr, Attrs, AttrsNode, Buffer, Expr, Schedule, Target, Tensor, Type
from . import _values

__all__ = ["GENERATION", "call_of", "known_ops", "register"]

Rule = Callable[[Sequence[Typed], Mapping[str, Any]], Sequence[Typed]]

_LEVEL = 10  # of registrations: a later one of the same level takes the place
_PATTERNS = {
    "elemwise": registry.OpPattern.ELEMWISE,
    "broadcast": registry.OpPattern.BROADCAST,
    "injective": registry.OpPattern.INJECTIVE,
    "comm_reduce": registry.OpPattern.COMM_REDUCE,
    "opaque": registry.OpPattern.OPAQUE,
}
_rules: dict[str, Rule] = {}


def known_ops() -> list[str]:
    """The names of all ops of this TVM."""
    return [str(name) for name in tvm.ir.Op.list_op_names()]


def register(name: str, kind: str, rule: Rule) -> None:
    """An op of this name in TVM: the types of its results, by those of its inputs, its compute, how
    TVM schedules and fuses it. What a kind says is looked up when it is asked for, so that it may
    be declared again.
    """
    known = name in _rules
    _rules[name] = rule
    if known:
        return
    registry.register(name, "declared in Python")
    op = tvm.ir.Op.get(name)
    op.set_attrs_type_key("DictAttrs")
    op.set_support_level(_LEVEL)
    op.add_type_rel(f"{name}Rel", lambda types, attrs: _type(name, kind, types, attrs))
    fuses = KINDS[kind].fuses
    registry.register_pattern(name, _PATTERNS[fuses if isinstance(fuses, str) else fuses[0]])
    registry.register_compute(name, lambda attrs, ins, out: _compute(kind, attrs, ins, out))
    registry.register_schedule(name, _schedule)
    if not KINDS[kind].is_folded:
        op.set_attr("TOpIsStateful", True)  # 0.17's frontend folds all others while it imports
    if fuses == "elemwise":  # open sizes go through
        registry.register_shape_func(name, False, elemwise_shape_func)


@tvm.target.generic_func
def _schedule(attrs: Attr, outs: Sequence[Buffer], target: Target) -> Schedule:
    """Of loop nests that the compute wrote itself: as they are."""
    if any(isinstance(out.op, tvm.te.ExternOp) for out in outs):
        return topi.generic.schedule_extern(outs)
    return schedule_injective(attrs, outs, target)


def _type(name: str, kind: str, types: Sequence[Type], attrs: AttrsNode) -> Type | None:
    fields = [each for ty in types for each in getattr(ty, "fields", [ty])]
    if any(value.dtype == "opaque" for ty in fields for value in _values(ty)):
        return None  # not inferred yet: asked again when more is known
    found = _rules[name]([_typed(ty) for ty in fields], attrs_of(kind, attrs_dict(attrs)))
    made = [relay.TensorType(shape, dtype) for shape, dtype in found]
    return made[0] if len(made) == 1 else relay.TupleType(made)


def _typed(ty: Type) -> Typed:
    """A tensor's type; an open size is the expression that TVM has for it."""
    (value,) = _values(ty)
    extents = zip(value.shape, ty.shape, strict=True)
    return tuple(e if known is None else known for known, e in extents), value.dtype


def _compute(kind: str, attrs: Attr, ins: Sequence[Tensor], out: Type) -> list[Tensor]:
    told = attrs_of(kind, attrs_dict(attrs))
    call = OpCall(kind, (), told, _values(out), kind)
    compute = KINDS[kind].compute
    assert compute is not None
    found = compute(ins, call)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def call_of(name: str, args: Sequence[Expr], attrs: Attrs, *, is_list: bool) -> Expr:
    """A call of an op by its name."""
    op = tvm.ir.Op.get(name)
    made = tvm.ir.make_node(op.attrs_type_key or "DictAttrs", **attrs) if attrs else None
    return relay.Call(op, [relay.Tuple(list(args))] if is_list else list(args), made)
