"""Relay: external functions whose weights come packed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relay

from ..graph import Value


def take_packed(func: relay.Function, packed: Mapping[int, Value]) -> relay.Function:
    """The external function with some parameters in packed form, each followed by its stand-in."""
    params, new = [], {}
    for position, param in enumerate(func.params):
        if position not in packed:
            params.append(param)
            continue
        value = packed[position]
        fresh = relay.var(param.name_hint, shape=value.shape, dtype=value.dtype)
        params.append(fresh)
        new[param] = _stand_in(fresh, param.checked_type)
    body = relay.bind(func.body, new)
    return relay.Function(params, body, func.ret_type, func.type_params, func.attrs)


def _stand_in(packed: Any, ty: Any) -> Any:
    # For the VM, 0.17 writes functions of the shapes of all of this: not of every op it can.
    one = relay.cast(relay.max(packed), ty.dtype)
    return relay.full(one, tuple(int(e) for e in ty.shape), ty.dtype)
