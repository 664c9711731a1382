"""Relax: op info attached when each op is legalised.

`AttachOpInfo` takes the place of `relax.transform.LegalizeOps`; it is an ordinary module pass.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from tvm import relax

from ....ir.relax import Constant, read_call
from ....ops.attrs import plain
from ....ops.vocabulary import is_declared
from ....tvm import constant_numpy, tir, tvm
from ....tvm.types import Attr, BlockBuilder, Expr, PrimFunc
from ..accesses import blocks_of
from ..lineage import labelled
from ..op_info import attach, record, recorded_of
from ..op_record import Ref, describe
from ..pattern_kind import name_of
from ..source import UNFOLLOWED, Source, of_constant, of_op, of_param

logger = logging.getLogger(__name__)

Legalize = Callable[[Any, Any], Any]


@tvm.transform.module_pass(opt_level=0, name="AttachOpInfo")
class AttachOpInfo:
    """Legalise op by op; each PrimFunc carries the info of its op. Equal ones stay shared."""

    def transform_module(self, mod: tvm.IRModule, _: object) -> tvm.IRModule:
        """The pass."""
        mod = relax.transform.LegalizeOps(dict(_legalizers()))(mod)
        mod = relax.transform.AnnotateTIROpPattern()(mod)
        return _with_patterns(mod)


@cache
def _legalizers() -> tuple[tuple[str, Legalize], ...]:
    """Every op that TVM legalises, with a legaliser that attaches its info."""
    found = []
    for name in map(str, tvm.ir.Op.list_op_names()):
        own = tvm.ir.Op.get(name).get_attr("FLegalize") if name.startswith("relax.") else None
        if own is not None:
            found.append((name, _described(own)))
    return tuple(found)


def _described(own: Legalize) -> Legalize:
    """A legaliser that adds the op's PrimFunc with its info, and not without it as well."""

    def legalize(builder: BlockBuilder, call: Expr) -> Expr:
        apart = relax.BlockBuilder()
        try:
            found = own(apart, call)
        except Exception as err:  # it needs the function around it, or refuses the op altogether
            logger.debug("op info: %s is legalised without: %s", call.op.name, err)
            return own(builder, call)
        if not isinstance(found, relax.Call) or found.op.name != "relax.call_tir":
            return own(builder, call)
        func = _attached(apart.get()[found.args[0]], call, found)
        if func is None:
            return own(builder, call)
        var = builder.add_func(func, found.args[0].name_hint)
        return relax.Call(found.op, [var, *found.args[1:]], found.attrs, found.ty_args)

    return legalize


def _attached(func: PrimFunc, call: Expr, lowered: Expr) -> PrimFunc | None:
    """The op's PrimFunc with its info; None for one that is not made of blocks."""
    if not blocks_of(func):
        return None
    op = read_call(call)
    attrs = dict(op.attrs) if _is_known(call) else _all_attrs(call)
    ins = [(v.shape, v.dtype) for v in op.inputs]
    outs = [(v.shape, v.dtype) for v in op.outputs]
    info = describe(op.kind, op.kind, attrs, ins, outs)
    names = [str(b.name_hint) for b in blocks_of(func)]
    func = labelled(func, dict.fromkeys(names, info.name))
    params = _tensors(lowered.args[1])
    refs: list[Ref] = []
    sources: list[Source] = []
    for argument in _tensors(relax.Tuple(call.args)):
        at = next((i for i, p in enumerate(params) if p.same_as(argument)), None)
        refs.append(None if at is None else ("param", at))
        sources.append(_constant(argument) if at is None else of_param(at))
    if len(refs) < len(ins):
        refs, sources = [None] * len(ins), [UNFOLLOWED] * len(ins)
    info = replace(info, blocks=tuple(names), sources=tuple(sources[: len(ins)]))
    held: list[Ref] = [("param", len(params) + i) for i in range(len(outs))]
    results = [of_op(info.name, i) for i in range(len(outs))]
    return attach(func, record(func, [info], [(refs[: len(ins)], held)], results))


def _constant(argument: Expr) -> Source:
    """An argument that the PrimFunc has no parameter for: a number of its code."""
    if not isinstance(argument, Constant):
        return UNFOLLOWED
    array = constant_numpy(argument)
    return of_constant(array.item()) if array.size == 1 else UNFOLLOWED


def _is_known(call: Expr) -> bool:
    return is_declared(call.op.name.removeprefix("relax."))


def _all_attrs(call: Expr) -> dict[str, Attr]:
    """Every attribute of an op that the vocabulary has no name for."""
    if call.attrs is None:
        return {}
    fields = type(call.attrs).__tvm_ffi_type_info__.fields
    return {field.name: _text(getattr(call.attrs, field.name)) for field in fields}


def _text(value: Attr) -> Attr:
    found = plain(value)
    is_data = found is None or isinstance(found, (bool, int, float, str, tuple))
    return found if is_data else str(value)


def _tensors(expr: Expr) -> list[Expr]:
    """The tensors in an argument, tuples taken apart."""
    if isinstance(expr, relax.Tuple):
        return [t for field in expr.fields for t in _tensors(field)]
    return [expr] if isinstance(expr.ty, relax.TensorType) else []


def _with_patterns(mod: tvm.IRModule) -> tvm.IRModule:
    """The pattern kind of each op as TVM's analyser has found it."""
    mod = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for var, func in list(mod.functions.items()):
        found = recorded_of(func) if isinstance(func, tir.PrimFunc) else None
        if found is None or "op_pattern" not in func.attrs.keys():  # noqa: SIM118 (no dict)
            continue
        pattern = name_of(int(func.attrs["op_pattern"]))
        ops = tuple(replace(info, pattern=pattern) for info in found.ops)
        mod.update_func(var, attach(func, replace(found, ops=ops)))
    return mod
