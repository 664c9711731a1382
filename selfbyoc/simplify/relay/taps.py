"""Relay: convolutions without the taps that never meet the image (simplify/taps.py)."""

from __future__ import annotations

from typing import Any

from tvm import relay

from ...ir.relay.emit import constant
from ...ir.relay.walk import postorder, rebuild
from ...ops.attrs import pair
from ...tvm import constant_numpy, tvm
from ..taps import places, without_idle_taps


def taps_that_meet(mod: tvm.IRModule) -> tvm.IRModule:
    """The typed module; weights that are constants lose their other taps."""
    main = mod["main"]
    new: dict[Any, Any] = {}
    for expr in postorder(main.body):
        found = _trimmed(expr, new)
        new[expr] = rebuild(expr, new) if found is None else found
    if new[main.body].same_as(main.body):
        return mod
    done = tvm.IRModule(dict(mod.functions.items()), mod.type_definitions)
    known = relay.Function(main.params, new[main.body], main.ret_type, main.type_params, main.attrs)
    done.update_func(done.get_global_var("main"), known)
    return relay.transform.InferType()(done)


def _trimmed(call: Any, new: dict[Any, Any]) -> Any:
    if not isinstance(call, relay.Call) or call.op != relay.op.get("nn.conv2d"):
        return None
    data, weight = call.args
    attrs: Any = call.attrs
    if not isinstance(weight, relay.Constant):
        return None
    known = data.checked_type.shape
    shape = [int(e) if isinstance(e, tvm.tir.IntImm) else None for e in known]
    found = without_idle_taps(constant_numpy(weight), shape, attrs)
    if found is None:
        return None
    layouts = [str(attrs[f"{of}_layout"]) for of in ("data", "kernel", "out")]
    sizes = [found[0].shape[axis] for axis in places(layouts[1], "HW")]
    made = relay.nn.conv2d(
        new[data], constant(found[0]), pair(attrs.strides), found[1],
        pair(attrs.dilation), int(attrs.groups), attrs.channels, tuple(sizes),
        *layouts, str(attrs.out_dtype),
    )  # fmt: skip
    return relay.Call(made.op, made.args, made.attrs, made.type_args, call.span)
