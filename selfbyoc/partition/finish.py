"""What the external functions get after partitioning: composite, target, known scalars, packed
weights.

Constants stay arguments of the external function; a packed one is replaced in the caller. So that
the IR stays well typed, the external function then begins with a stand-in that gives the parameter
its unpacked type back (one element, everywhere). The hook drops it: the kernel reads the
packed values.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..codegen.attributes import PACKED, SCALARS, SEVEN_BITS, is_passed
from ..codegen.external import COMPOSITE, RANGES, TARGET, External, is_for, match_of, packed_params
from ..codegen.fallback import builtin_of
from ..codegen.hook import hook
from ..codegen.pack import compiled_together, described, packable, packed_types, packers
from ..codegen.parallel import at_once
from ..codegen.plan import plan_of
from ..codegen.records.lookup import with_record
from ..codegen.target import host_target
from ..codegen.tuning_record import Tuned, told_by
from ..errors import FallbackWarning, LoweringError, SelfbyocError, one_line
from ..graph import substitute, type_text
from ..language.decisions import for_every_size_of, undecided
from ..language.known import remember
from ..language.match.match import Match
from ..language.registry import Registry
from ..tvm import constant_tensor, target_dict, view_of
from ..tvm.types import Attr, Expr, Function, IRModule, NDArray, Target
from .generation import ir
from .original_weights import key_of, with_originals
from .readings import as_main_reads, written_attrs

Tensors = dict[int, Any]  # of TVM, by position: no copies
Packing = dict[int, Callable[[], Any]]


def finish(
    mod: IRModule,
    registry: Registry,
    target: Target | None,
    matches: Mapping[str, Match],
    *,
    pack: bool,
) -> IRModule:
    """Partitioned module -> the same with everything that the hook needs to know; `matches` are
    those of the functions, by name.
    """
    nodes = ir.constant_args(mod)
    found = partial(_functions, mod, nodes, registry, target, matches, pack)
    try:
        with compiled_together():
            functions, packing = found()
    except LoweringError:  # one by one it is known whose
        functions, packing = found()
    packed = _run(packing)
    return with_originals(ir.update(mod, functions, packed), _originals(nodes, packed))


def _functions(
    mod: IRModule,
    nodes: Mapping[str, Sequence[Mapping[int, Expr]]],
    registry: Registry,
    target: Target | None,
    matches: Mapping[str, Match],
    pack: bool,
) -> tuple[dict[str, Any], dict[str, list[Packing]]]:
    """The external functions by name, and what packs the constants of their calls."""
    functions: dict[str, Any] = {}
    packing: dict[str, list[Packing]] = {}
    external = ir.external_functions(mod)
    within = ir.ranges_of(mod, {*external})
    for name, func in external.items():
        sites = [{i: constant_tensor(c) for i, c in site.items()} for site in nodes.get(name, [])]
        scalars = _scalars(func, sites)
        attrs = {**_attrs(hook.composites(func), registry, target), SCALARS: scalars}
        if seven_bits := _of_seven_bits(sites):
            attrs[SEVEN_BITS] = seven_bits
        if name in within:
            attrs[RANGES] = {of: (each.least, each.most) for of, each in within[name].items()}
        source, read = as_main_reads(
            matches[name],
            lambda told: hook.source_of(func, "", {**attrs, **told}),  # noqa: B023
            partial(_of_constants, sites=sites),
        )
        source = replace(source, attrs={**attrs, **read})
        # A plan asks for the target, and packs once for every size.
        with target or host_target(), for_every_size_of(source.sizes.values()):
            source, waiting = _packed_or_not(source, target, sites if pack else [])
        if waiting:
            packing[name] = waiting
            func = ir.take_packed(func, {i: p.value for i, p in packed_params(source).items()})
        for key, value in {**source.attrs, **written_attrs(source)}.items():
            func = func.with_attr(key, json.dumps(value))
        functions[name] = func
    return functions, packing


def _run(packing: Mapping[str, Sequence[Packing]]) -> dict[str, list[Tensors]]:
    """All weights packed, several at once."""
    jobs = [job for sites in packing.values() for site in sites for job in site.values()]
    done = iter(at_once(jobs))
    return {
        name: [{i: next(done) for i in site} for site in sites] for name, sites in packing.items()
    }


def _originals(
    nodes: Mapping[str, Sequence[Mapping[int, Expr]]], packed: Mapping[str, Sequence[Tensors]]
) -> dict[str, Expr]:
    """The constants of all calls that are packed, by what they become."""
    found = [
        (node[i], held)
        for name, sites in packed.items()
        for node, site in zip(nodes[name], sites, strict=True)
        for i, held in site.items()
    ]
    keys = at_once([partial(_key, constant_tensor(node), held) for node, held in found])
    return {key: node for key, (node, _) in zip(keys, found, strict=True)}


def _key(was: NDArray, packed: NDArray) -> str:
    return key_of(view_of(packed), type_text([int(e) for e in was.shape], str(was.dtype)))


def _attrs(names: Sequence[str], registry: Registry, target: Target | None) -> dict[str, Attr]:
    attrs: dict[str, Any] = {}
    if len(names) == 1:
        attrs[COMPOSITE] = remember(registry[names[0]])
    if target is not None:
        attrs[TARGET] = target_dict(target)
    return attrs


def _of_constants(source: External, sites: Sequence[Tensors]) -> External:
    """The function, of whose inputs those that every caller passes as constants say so."""
    always = set.intersection(*map(set, sites)) if sites else set[int]()
    inputs = source.graph.inputs
    new = {inputs[i]: replace(inputs[i], is_constant=True) for i in always}
    return replace(source, graph=substitute(source.graph, new))


def _scalars(func: Function, sites: Sequence[Tensors]) -> dict[int, float | int]:
    """The constants of one element that are part of what a function is, by position: all callers
    agree on them.
    """
    if not sites:
        return {}
    first, *others = [
        {i: held.numpy() for i, held in site.items() if math.prod(held.shape) == 1}
        for site in sites
    ]
    agreed = {
        i: a.reshape(-1)[0].item()
        for i, a in first.items()
        if all(i in s and np.array_equal(s[i], a) for s in others)
    }
    graph = hook.read(func) if agreed else None
    return {i: n for i, n in agreed.items() if graph and not is_passed(graph, graph.inputs[i], n)}


def _of_seven_bits(sites: Sequence[Tensors]) -> list[int]:
    """The weights of bytes that every caller passes within 64 of their middle, by position."""
    found = [{i for i, held in site.items() if _has_seven_bits(held)} for site in sites]
    return sorted(set.intersection(*found)) if found else []


def _has_seven_bits(held: NDArray) -> bool:
    middle = {"int8": 0, "uint8": 128}.get(str(held.dtype))
    if middle is None or len(held.shape) < 2:
        return False
    array = view_of(held)
    return bool(
        array.min(initial=middle) >= middle - 64 and array.max(initial=middle) <= middle + 64
    )


def _packed_or_not(
    source: External, target: Target | None, sites: Sequence[Tensors]
) -> tuple[External, list[Packing]]:
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
    source: External, target: Target | None, sites: Sequence[Tensors]
) -> tuple[External, list[Packing]]:
    """The function that takes packed what every caller passes as a constant, and does what the
    record in force for it says; and what packs that, call by call.
    """
    wanted = _wanted(source, target, sites) if sites else {}
    if wanted:
        types = packed_types(source.graph, match_of(source), wanted)
        source = replace(source, attrs={**source.attrs, PACKED: described(types)})
        _check_read(source)
    source = with_record(source, target, packed=False)
    positions = packed_params(source)
    if not positions:
        return source, []
    with told_by(Tuned.of(source.attrs)):
        pack = packers(source.graph, match_of(source), positions)
    return source, [{i: partial(pack[i], site[i]) for i in pack} for site in sites]


def _check_read(source: External) -> None:
    """Raise what the plan of the hook would, which is told how weights are packed: it is too late
    then to leave them as they are.
    """
    shapes = {p.arg: p.value.shape for p in packed_params(source).values()}
    # The hook asks its questions by itself, not among those of whoever packs.
    with undecided(), for_every_size_of(source.sizes.values()):
        plan_of(match_of(source), shapes)


def _wanted(source: External, target: Target | None, sites: Sequence[Tensors]) -> dict[int, str]:
    if not is_for(match_of(source).composite, target or host_target()):
        return {}
    found = packable(source.graph, match_of(source))
    return {i: name for i, name in found.items() if all(i in site for site in sites)}
