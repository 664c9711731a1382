"""What the external functions get after partitioning: composite, target, known scalars, packed
weights.

Constants stay arguments of the external function; a packed one is replaced in the caller. So that
the IR stays well typed, the external function then begins with a stand-in that gives the parameter
its unpacked type back (its first element, broadcast). The hook drops it: the kernel reads the
packed values.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._tvm import target_dict
from ..codegen.fallback import builtin_of
from ..codegen.hook import hook
from ..codegen.lower import (
    COMPOSITE,
    PACKED,
    SCALARS,
    TARGET,
    External,
    external,
    match_of,
    packed_params,
)
from ..codegen.pack import described, pack_constants, packable, packed_types
from ..codegen.target import host_target
from ..codegen.tuned import Tuned, told_by
from ..errors import FallbackWarning, SelfbyocError, one_line
from ..graph import type_text
from ..language.known import remember
from ..language.registry import Registry
from ..wiring import wired
from .generation import ir
from .originals import key_of, with_originals

Arrays = dict[int, np.ndarray]


def finish(mod: Any, registry: Registry, target: Any | None, *, pack: bool) -> Any:
    """Partitioned module -> the same with everything that the hook needs to know."""
    calls, nodes = ir.call_constants(mod), ir.constant_args(mod)
    functions: dict[str, Any] = {}
    packed: dict[str, list[Arrays]] = {}
    originals: dict[str, Any] = {}
    for name, func in ir.external_functions(mod).items():
        sites = calls.get(name, [])
        attrs = {**_attrs(hook.composites(func), registry, target), SCALARS: _scalars(sites)}
        source = external("", hook.composites(func), hook.read(func), attrs)
        with target or host_target():  # a plan asks for it
            source, arrays = _packed_or_not(source, target, sites if pack else [])
        if arrays:
            packed[name] = arrays
            originals |= _originals(nodes[name], sites, arrays)
            func = ir.take_packed(func, {i: p.value for i, p in packed_params(source).items()})
        for key, value in source.attrs.items():
            func = func.with_attr(key, json.dumps(value))
        functions[name] = func
    return with_originals(ir.update(mod, functions, packed), originals)


def _originals(
    nodes: Sequence[Mapping[int, Any]], sites: Sequence[Arrays], packed: Sequence[Arrays]
) -> dict[str, Any]:
    """The constants of all calls of a function that are packed, by what they become."""
    return {
        key_of(array, type_text(site[i].shape, str(site[i].dtype))): node[i]
        for node, site, arrays in zip(nodes, sites, packed, strict=True)
        for i, array in arrays.items()
    }


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


def _packed_or_not(
    source: External, target: Any | None, sites: Sequence[Arrays]
) -> tuple[External, list[Arrays]]:
    """Unpacked, where the plan or the packing of a built-in composite raises: the hook then finds
    something to take the ops with.
    """
    try:
        return _packed(source, target, sites)
    except SelfbyocError as err:
        composite = builtin_of(source) if sites else None
        if composite is None:
            raise
        text = f"composite {composite.name}: its weights are not packed: {one_line(err)}"
        warnings.warn(FallbackWarning(text), stacklevel=4)
        return _packed(source, target, [])


def _packed(
    source: External, target: Any | None, sites: Sequence[Arrays]
) -> tuple[External, list[Arrays]]:
    """The function that takes packed what every caller passes as a constant, and does what the
    record in force for it says.
    """
    wanted = _wanted(source, sites) if sites else {}
    if wanted:
        types = packed_types(source.graph, match_of(source), wanted)
        source = replace(source, attrs={**source.attrs, PACKED: described(types)})
    source = wired.with_record(source, target, packed=False)
    wanted = {i: p.arg for i, p in packed_params(source).items()}
    if not wanted:
        return source, []
    with told_by(Tuned.of(source.attrs)):
        match = match_of(source)
        return source, [pack_constants(source.graph, match, _only(s, wanted)) for s in sites]


def _wanted(source: External, sites: Sequence[Arrays]) -> dict[int, str]:
    found = packable(source.graph, match_of(source))
    return {i: name for i, name in found.items() if all(i in site for site in sites)}


def _only(site: Arrays, wanted: Mapping[int, str]) -> Arrays:
    return {i: a for i, a in site.items() if i in wanted}
