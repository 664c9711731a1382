"""Relay: what passes ask of expressions."""

from __future__ import annotations

from typing import Any

from tvm import relay

from ...tvm import constant_numpy, tvm


def with_main(mod: tvm.IRModule, body: Any) -> tvm.IRModule:
    """A module with another main function, typed; itself where that is the same."""
    main = mod["main"]
    if body.same_as(main.body):
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    known = relay.Function(main.params, body, main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), known)
    return relay.transform.InferType()(done)


def name_of(expr: Any) -> str:
    """The name of an op that is called; none for anything else."""
    return str(getattr(expr.op, "name", "")) if isinstance(expr, relay.Call) else ""


def array_of(expr: Any) -> Any:
    """What a constant holds; None for any other."""
    return constant_numpy(expr) if isinstance(expr, relay.Constant) else None


def dtype_of(expr: Any) -> str:
    """The dtype of a tensor that is not typed yet."""
    return str(relay.transform.InferTypeLocal(expr).dtype)
