"""Relay: a module's constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relay

from ...ir.relay.walk import postorder, rebuild
from ...tvm import tvm
from ...tvm.types import Expr, NDArray


def is_constant(node: Expr) -> bool:
    """Whether a node of the IR is a constant tensor."""
    return isinstance(node, relay.Constant)


def callee(node: Expr) -> str:
    """The function of the module that a node of `main` calls, or nothing."""
    is_call = isinstance(node, relay.Call) and isinstance(node.op, relay.GlobalVar)
    return str(node.op.name_hint) if is_call else ""


def replaced(mod: tvm.IRModule, new: Mapping[Expr, NDArray]) -> tvm.IRModule:
    """The module with other tensors for some constants of `main`."""
    main, done = mod["main"], tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    made: dict[Any, Any] = {}
    for expr in postorder(main.body):
        made[expr] = relay.const(new[expr]) if expr in new else rebuild(expr, made)
    whole = relay.Function(
        main.params, made[main.body], main.ret_type, main.type_params, main.attrs
    )
    done.update_func(done.get_global_var("main"), whole)
    done = relay.transform.InferType()(done)
    for name, value in (mod.attrs or {}).items():
        done = done.with_attr(name, value)
    return done
