"""Relax: op info kept when TVM fuses.

`FuseTIR` takes the place of `relax.transform.FuseTIR`; it is an ordinary module pass.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import relax

from ....tvm import Schedule, child_blocks, tir, tvm
from ....tvm.types import Function, PrimFunc
from ..accesses import OP_LABEL, blocks_of, label_of
from ..op_info import attach, op_info, record, recorded_of
from ..op_record import Recorded, Ref
from ..source import PARAM, UNFOLLOWED, Source, of_param

logger = logging.getLogger(__name__)


@tvm.transform.module_pass(opt_level=0, name="FuseTIR")
class FuseTIR:
    """TVM's FuseTIR, which drops all attributes; the fused PrimFunc gets the ordered ops of its
    parts.
    """

    def transform_module(self, mod: tvm.IRModule, _: object) -> tvm.IRModule:
        """The pass."""
        parts = {
            var.name_hint: _parts(func, mod)
            for var, func in mod.functions.items()
            if isinstance(func, relax.Function) and _is_primitive(func)
        }
        fused = relax.transform.FuseTIR()(mod)
        for var, func in list(fused.functions.items()):
            found = parts.get(var.name_hint)
            if found and isinstance(func, tir.PrimFunc):
                fused.update_func(var, _joined(func, found))
        return fused


def _is_primitive(func: Function) -> bool:
    return func.attrs is not None and "Primitive" in func.attrs.keys()  # noqa: SIM118


Came = tuple[str, int, int] | None  # ("param", position, 0) or ("part", number, output)


@dataclass(frozen=True)
class _Part:
    """One call inside a fused function: its PrimFunc, and where its arguments come from."""

    func: PrimFunc
    sources: Sequence[Came]


@dataclass(frozen=True)
class _Fused:
    """The calls of a fused function in order, and what it returns."""

    parts: Sequence[_Part]
    results: Sequence[Came]


def _parts(func: Function, mod: tvm.IRModule) -> _Fused | None:
    """What a fused function is made of; None if it does more than call PrimFuncs."""
    came: dict[Any, list[Came]] = {}
    position = 0
    for param in func.params:
        fields = param.ty.fields if isinstance(param.ty, relax.TupleType) else [param.ty]
        came[param] = [("param", position + i, 0) for i in range(len(fields))]
        position += len(fields)
    parts: list[_Part] = []
    for block in func.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.TupleGetItem):
                came[binding.var] = [came.get(value.tuple_value, [None] * 99)[value.index]]
            elif isinstance(value, relax.Call) and value.op.name == "relax.call_tir":
                args = value.args[1].fields if isinstance(value.args[1], relax.Tuple) else []
                sources = [s for a in args for s in came.get(a, [None])]
                outs = binding.var.ty.fields if isinstance(binding.var.ty, relax.TupleType) else [0]
                came[binding.var] = [("part", len(parts), i) for i in range(len(outs))]
                parts.append(_Part(mod[value.args[0]], sources))
            elif isinstance(value, (relax.Var, relax.Tuple)):
                fields = value.fields if isinstance(value, relax.Tuple) else [value]
                came[binding.var] = [s for f in fields for s in came.get(f, [None])]
            else:
                return None
    last = func.body.body
    returned = last.fields if isinstance(last, relax.Tuple) else [last]
    return _Fused(parts, [s for value in returned for s in came.get(value, [None])])


def _joined(fused: PrimFunc, found: _Fused) -> PrimFunc:
    """The fused PrimFunc with the ops of its parts, its blocks labelled with their new names."""
    parts = found.parts
    records = [recorded_of(part.func) for part in parts]
    if any(r is None for r in records):
        return fused
    known = [r for r in records if r is not None]
    names = _fresh_names(known)
    blocks = blocks_of(fused)
    wanted = [b.label for r in known for b in r.accesses.blocks]
    if [label_of(b) for b in blocks] != wanted:
        logger.warning("op info: the blocks of a fused function are not those of its parts")
        return fused
    owners = [new[b.op] for r, new in zip(known, names, strict=True) for b in r.accesses.blocks]
    func = _relabelled(fused, owners)
    starts = [sum(len(r.accesses.blocks) for r in known[:n]) for n in range(len(known))]
    now = [str(b.name_hint) for b in blocks]
    edges = _Edges(parts, known, names)
    ops, refs = [], []
    for n, (part, record_of, new) in enumerate(zip(parts, known, names, strict=True)):
        for info, (ins, outs) in zip(op_info(part.func), record_of.refs, strict=True):
            mine = tuple(b for b, owner in zip(now, owners, strict=True) if owner == new[info.name])
            sources = tuple(edges.inside(n, source) for source in info.sources)
            ops.append(replace(info, name=new[info.name], blocks=mine, sources=sources))
            placed = [[_moved(r, n, parts, known, starts) for r in side] for side in (ins, outs)]
            refs.append((placed[0], placed[1]))
    return attach(func, record(func, ops, refs, list(map(edges.at, found.results))))


@dataclass(frozen=True)
class _Edges:
    """Edges of the parts as edges of the fused function."""

    parts: Sequence[_Part]
    records: Sequence[Recorded]
    names: Sequence[Mapping[str, str]]

    def inside(self, part: int, source: Source) -> Source:
        """What an op of this part reads."""
        if source.kind == PARAM and source.index < len(self.parts[part].sources):
            return self.at(self.parts[part].sources[source.index])
        return source.renamed(self.names[part])

    def at(self, came: Came) -> Source:
        """A parameter of the fused function, or a result of a part."""
        if came is None:
            return UNFOLLOWED
        kind, number, output = came
        if kind == "param":
            return of_param(number)
        results = self.records[number].results
        return self.inside(number, results[output]) if output < len(results) else UNFOLLOWED


def _fresh_names(records: Sequence[Recorded]) -> list[dict[str, str]]:
    """Names local to each part -> names in the fused function: the kind, numbered."""
    seen: dict[str, int] = {}
    names = []
    for found in records:
        new = {}
        for info in found.ops:
            count = seen.get(info.kind, 0)
            seen[info.kind] = count + 1
            new[info.name] = f"{info.kind}_{count}" if count else info.kind
        names.append(new)
    return names


def _relabelled(func: PrimFunc, owners: Sequence[str]) -> PrimFunc:
    begin = tvm.IRModule(
        {"main": func.with_attr("global_symbol", "main")}
    )  # kept: codegen/apply.py
    sch = Schedule(begin)
    for position, (block, owner) in enumerate(zip(child_blocks(sch), owners, strict=True)):
        sch.unannotate(block, OP_LABEL)
        sch.annotate(block, OP_LABEL, f"{owner}:{position}")
    done = sch.mod["main"]
    has_symbol = func.attrs is not None and "global_symbol" in func.attrs.keys()  # noqa: SIM118
    return done if has_symbol else done.without_attr("global_symbol")


def _moved(
    ref: Ref, part: int, parts: Sequence[_Part], records: Sequence[Recorded], starts: Sequence[int]
) -> Ref:
    """A part's buffer as one of the fused function's."""
    if ref is None:
        return None
    kind, index = ref
    if kind == "block":
        return ("block", starts[part] + index)
    inputs = len(parts[part].sources)
    if index >= inputs:  # a result: what writes it is known
        return _written(records[part], index, starts[part])
    source = parts[part].sources[index]
    if source is None:
        return None
    origin, number, output = source
    if origin == "param":
        return ("param", number)
    first = len(parts[number].sources)
    return _written(records[number], first + output, starts[number])


def _written(found: Recorded, param: int, start: int) -> Ref:
    buffer = found.accesses.params[param]
    for position, block in enumerate(found.accesses.blocks):
        if any(store.buffer == buffer for store in block.stores):
            return ("block", start + position)
    return None
