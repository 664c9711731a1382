"""Relay: convolutions without the taps that never meet the image (partition/taps.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relay

from .._tvm import constant_numpy, tvm
from ..ir._relay_emit import constant
from ..ir._relay_walk import postorder, rebuild
from ..ops.attrs import pair, quad
from .taps import Window, kept_of, places


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
    shape, layout = data.checked_type.shape, (str(attrs.data_layout), str(attrs.kernel_layout))
    if not isinstance(weight, relay.Constant) or len(layout[0]) != 4 or len(layout[1]) != 4:
        return None
    image = [shape[axis] for axis in places(layout[0], "HW")]
    if not all(isinstance(extent, tvm.tir.IntImm) for extent in image):
        return None
    array, at = constant_numpy(weight), places(layout[1], "HW")
    height, width = map(int, image)
    window = Window(
        (height, width), (array.shape[at[0]], array.shape[at[1]]),
        pair(attrs.strides), pair(attrs.dilation), quad(attrs.padding),
    )  # fmt: skip
    found = kept_of(window)
    if found is None:
        return None
    for axis, taps in zip(at, found[0], strict=True):
        array = np.take(array, taps, axis)
    made = relay.nn.conv2d(
        new[data], constant(np.ascontiguousarray(array)), pair(attrs.strides), found[1],
        pair(attrs.dilation), int(attrs.groups), attrs.channels, tuple(map(len, found[0])),
        *layout, str(attrs.out_layout), str(attrs.out_dtype),
    )  # fmt: skip
    return relay.Call(made.op, made.args, made.attrs, made.type_args, call.span)
