"""Relay: an op of one's own, registered from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import relay
from tvm.relay.op import op as registry
from tvm.relay.op._tensor import elemwise_shape_func

from .._tvm import GENERATION, attrs_dict, tvm
from ..graph import OpCall, Shape
from ..ops.vocabulary import KINDS, attrs_of
from ._relay import Expr, _values

__all__ = ["GENERATION", "call_of", "known_ops", "register"]

Rule = Callable[[Sequence[Shape], Sequence[str], Mapping[str, Any]], Any]

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
    """An op of this name in TVM: its type, its compute, how TVM schedules and fuses it. What a kind
    says is looked up when it is asked for, so that it may be declared again.
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
    registry.register_injective_schedule(name)
    if fuses == "elemwise":  # open sizes go through
        registry.register_shape_func(name, False, elemwise_shape_func)


def _type(name: str, kind: str, types: Sequence[Any], attrs: Any) -> Any:
    values = [value for ty in types for value in _values(ty)]
    if any(value.dtype == "opaque" for value in values):
        return None  # not inferred yet: asked again when more is known
    shapes, dtypes = [v.shape for v in values], [v.dtype for v in values]
    shape, dtype = _rules[name](shapes, dtypes, attrs_of(kind, attrs_dict(attrs)))
    # Open sizes are those of the only input.
    return relay.TensorType(types[0].shape if None in shape else shape, dtype)


def _compute(kind: str, attrs: Any, ins: Sequence[Any], out: Any) -> list[Any]:
    told = attrs_of(kind, attrs_dict(attrs))
    call = OpCall(kind, (), told, _values(out), kind)
    compute = KINDS[kind].compute
    assert compute is not None
    return [compute(ins, call)]


def call_of(name: str, args: Sequence[Expr], attrs: Mapping[str, Any], *, is_list: bool) -> Expr:
    """A call of an op by its name."""
    op = tvm.ir.Op.get(name)
    made = tvm.ir.make_node(op.attrs_type_key or "DictAttrs", **attrs) if attrs else None
    return relay.Call(op, [relay.Tuple(list(args))] if is_list else list(args), made)
