"""Relay: bodies put aside while TVM's passes run. Around most of them, TVM 0.17 infers the types of
every function anew, 0.13 ms an op: thirty times when partitioning, ninety in relay.build.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relay

from .walk import postorder, rebuild

WHOLE = "tefuse.whole"  # on a hollow function: the function that it was


def hollow(func: relay.Function) -> relay.Function:
    """A function of the same type whose body is zeros; itself it is an attribute of that one."""
    ty = func.checked_type
    types = ty.ret_type.fields if isinstance(ty.ret_type, relay.TupleType) else [ty.ret_type]
    zeros = [relay.zeros([int(e) for e in t.shape], t.dtype) for t in types]
    body = relay.Tuple(zeros) if isinstance(ty.ret_type, relay.TupleType) else zeros[0]
    params = [relay.Var(p.name_hint, p.checked_type) for p in func.params]
    empty = relay.Function(params, body, ty.ret_type, attrs=func.attrs)
    return empty.with_attr(WHOLE, func)


def is_hollow(func: relay.Function) -> bool:
    """Whether `hollow` made this function."""
    return WHOLE in func.attrs.keys()  # noqa: SIM118 (no Python dict)


def whole(func: relay.Function) -> relay.Function:
    """The function that a hollow one was; any other as it is."""
    return func.attrs[WHOLE] if is_hollow(func) else func


def with_composites(
    func: relay.Function, change: Callable[[relay.Function], relay.Function]
) -> relay.Function:
    """The function, each composite that it calls changed."""
    new: dict[Any, Any] = {}
    for expr in postorder(func.body):
        new[expr] = rebuild(expr, new)
        if isinstance(expr, relay.Call) and isinstance(expr.op, relay.Function):
            new[expr] = relay.Call(change(expr.op), new[expr].args, expr.attrs)
    return relay.Function(func.params, new[func.body], func.ret_type, func.type_params, func.attrs)
