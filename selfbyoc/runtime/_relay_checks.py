"""Relay: copies that raise an InputError where something does not hold, as ops. What nothing reads
would be left out, so that a check is a copy of what is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import relay, te, tir, topi
from tvm.relay.op import op as registry
from tvm.relay.op._tensor import elemwise_shape_func

from .._tvm import tvm
from ..ir._relay_walk import postorder, rebuild


def call_of(name: str, compute: Callable[..., Any], args: Sequence[Any], **attrs: Any) -> Any:
    """A call of an op whose result is of the type of its first input. TVM gets to know it when the
    first model needs it.
    """
    if name not in _registered:
        _registered.add(name)
        _register(name, compute)
    made = tvm.ir.make_node("DictAttrs", **attrs)
    return relay.Call(tvm.ir.Op.get(name), list(args), made)


_registered: set[str] = set()


def _register(name: str, compute: Callable[..., Any]) -> None:
    registry.register(name, "a copy of what is as it has to be")
    op = tvm.ir.Op.get(name)
    op.set_attrs_type_key("DictAttrs")
    op.set_support_level(10)
    op.add_type_rel(f"{name}Rel", lambda types, attrs: types[0])
    registry.register_pattern(name, registry.OpPattern.OPAQUE)
    registry.register_compute(name, compute)
    registry.register_schedule(name, _schedule)
    registry.register_shape_func(name, False, elemwise_shape_func)


@tvm.target.generic_func
def _schedule(attrs: Any, outs: Sequence[Any], target: Any) -> Any:
    return topi.generic.schedule_extern(outs)


def copied(x: Any, read: Sequence[Any], holds: Callable[[Sequence[Any]], Any], text: str) -> Any:
    """A tensor with the elements of one, the first of those that are `read`; `holds` makes a
    condition of their buffers.
    """

    def body(given: Sequence[Any], results: Sequence[Any]) -> Any:
        builder = tir.ir_builder.create()
        condition = holds(given)
        builder.emit(lambda rest: tir.AssertStmt(condition, tir.StringImm(text), rest))
        source, target = builder.buffer_ptr(given[0]), builder.buffer_ptr(results[0])
        with builder.for_range(0, math.prod(x.shape), "at") as at:
            target[at] = source[at]
        return builder.get()

    return te.extern([x.shape], list(read), body, name="checked", dtype=x.dtype)


def rebuilt(mod: tvm.IRModule, change: Callable[[Any, Any, Mapping[Any, Any]], Any]) -> Any:
    """The module, its main with each expression as `change` makes it of what it was, of what it is
    over new inputs, and of what became of each expression.
    """
    main, new = mod["main"], dict[Any, Any]()
    for expr in postorder(main.body):
        new[expr] = change(expr, rebuild(expr, new), new)
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    ret = main.ret_type
    done["main"] = relay.Function(main.params, new[main.body], ret, main.type_params, main.attrs)
    return relay.transform.InferType()(done)


def opaque(extent: Any) -> Any:
    """A size of which nothing is known, in 64 bits: of its own variables TVM takes for granted that
    they are 1 or more.
    """
    return tir.Cast("int64", tir.reinterpret(f"u{extent.dtype}", extent))
