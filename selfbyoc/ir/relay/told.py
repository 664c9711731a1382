"""Relay: what a user says of extents of `Any`."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relay

from ...errors import InputError, did_you_mean
from ...tvm import tvm
from ...tvm.types import Function
from .any import Names, named, places, with_names


def told(mod: tvm.IRModule, names: Mapping[str, Mapping[int, str]]) -> tvm.IRModule:
    """The module, its inputs' unknown extents called so; see partition/name_sizes.py."""
    typed = relay.transform.InferType()(mod)
    main = with_names(typed["main"], _found(typed["main"], names))
    if not named(main, typed):
        text = {name: dict(axes) for name, axes in names.items()}
        raise InputError(f"names: the types of the model do not fit {text}")
    typed.update_func(typed.get_global_var("main"), main)
    return typed


def _found(main: Function, names: Mapping[str, Mapping[int, str]]) -> Names:
    inputs = {param.name_hint: position for position, param in enumerate(main.params)}
    unknown, found = places(main), {}
    for name, axes in names.items():
        if name not in inputs:
            raise InputError(f"names: no input {name!r}{did_you_mean(name, inputs)}")
        for axis, text in axes.items():
            if (inputs[name], axis) not in unknown:
                raise InputError(f"names: axis {axis!r} of input {name!r} is no unknown extent")
            found[inputs[name], axis] = text
    return found
