"""What the external functions get after partitioning: composite, target, known scalars, packed
weights.

Constants stay arguments of the external function; a packed one is replaced in the caller. So that
the IR stays well typed, the external function then begins with a stand-in that gives the parameter
its unpacked type back (its first element, broadcast). The hook drops it: the kernel reads the
packed values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._tvm import target_dict
from ..builtin import remember
from ..codegen.hook import hook
from ..codegen.lower import COMPOSITE, PACKED, SCALARS, TARGET, External, external, match_of
from ..codegen.pack import pack_constants, packable, packed_type
from ..composite import Registry
from .generation import ir

Arrays = dict[int, np.ndarray]


def finish(mod: Any, registry: Registry, target: Any | None, *, pack: bool) -> Any:
    """Partitioned module -> the same with everything that the hook needs to know."""
    calls = ir.call_constants(mod)
    functions: dict[str, Any] = {}
    packed: dict[str, list[Arrays]] = {}
    for name, func in ir.external_functions(mod).items():
        attrs = {
            **_attrs(hook.composites(func), registry, target),
            SCALARS: _scalars(calls.get(name, [])),
        }
        if pack:
            func, attrs, arrays = _pack(func, attrs, calls.get(name, []))
            if arrays:
                packed[name] = arrays
        for key, value in attrs.items():
            func = func.with_attr(key, json.dumps(value))
        functions[name] = func
    return ir.update(mod, functions, packed)


def _attrs(names: Sequence[str], registry: Registry, target: Any | None) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    if len(names) == 1:
        attrs[COMPOSITE] = remember(registry[names[0]])
    if target is not None:
        attrs[TARGET] = target_dict(target)
    return attrs


def _scalars(sites: Sequence[Arrays]) -> dict[int, float | int]:
    """The constants of one element on which all callers agree, by position."""
    if not sites:
        return {}
    first, *others = sites
    return {
        i: a.reshape(-1)[0].item()
        for i, a in first.items()
        if a.size == 1 and all(i in s and np.array_equal(s[i], a) for s in others)
    }


def _pack(
    func: Any, attrs: dict[str, Any], sites: Sequence[Arrays]
) -> tuple[Any, dict[str, Any], list[Arrays]]:
    """Pack what every caller passes as a constant."""
    seen: External = external("", hook.composites(func), hook.read(func), attrs)
    match = match_of(seen)
    wanted = {
        position: name
        for position, name in packable(seen.graph, match).items()
        if sites and all(position in site for site in sites)
    }
    if not wanted:
        return func, attrs, []
    types = {i: packed_type(seen.graph, match, i, name) for i, name in wanted.items()}
    arrays = [pack_constants(seen.graph, match, _only(site, wanted)) for site in sites]
    func = ir.take_packed(func, {i: p.value for i, p in types.items()})
    described = {
        i: {"arg": p.arg, "shape": p.value.shape, "dtype": p.value.dtype} for i, p in types.items()
    }
    return func, {**attrs, PACKED: described}, arrays


def _only(site: Arrays, wanted: Mapping[int, str]) -> Arrays:
    return {i: a for i, a in site.items() if i in wanted}
