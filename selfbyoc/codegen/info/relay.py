"""Relay: op info on the PrimFuncs that TVM makes of its primitive (fused) functions.

Relay turns such a function into TE op by op, and the whole into a PrimFunc by a converter that can
be chosen in the PassContext. The first tells which stages are whose, the second attaches it. It is
the same way for `lower_to_primfunc`, for MetaSchedule's tasks and for building with its database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tvm import relay
from tvm.relay.backend import te_compiler

from ...ir.relay import neutral
from ...ops.attrs import plain
from ...ops.vocabulary import is_declared
from ...tir.te_blocks import block_names, te_order
from ...tvm import attrs_dict, make_target, register_func, te, tvm
from ...tvm.types import Attr, Attrs, NDArray, Op, PrimFunc, Target, Tensor, TeOperation, Type
from .accesses import blocks_of
from .lineage import labelled
from .op_info import attach, record
from .op_record import OpInfo, Ref, describe
from .pattern_kind import name_of
from .source import DATA, UNFOLLOWED, Source, of_constant, of_op, of_param

logger = logging.getLogger(__name__)

CONVERTER = "tefuse_op_info"
_OPTION = "relay.backend.tir_converter"


@dataclass(frozen=True)
class _Lowered:
    """One op as Relay lowered it: its call, and the TE tensors that go in and come out."""

    name: str
    attrs: Any
    result: Type
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]


_lowered: list[_Lowered] = []


@contextmanager
def op_info_attached(config: Attrs | None = None) -> Iterator[dict[str, Attr]]:
    """While it is entered, PrimFuncs that Relay makes carry op info; gives the PassContext options.

    They must reach TVM: `extract_tasks(..., pass_config=options)`, and likewise `compile_relay`,
    so that a database finds the functions again.
    """
    options = {**(config or {}), _OPTION: CONVERTER}
    own = te_compiler.select_implementation
    te_compiler.select_implementation = _noting(own)
    try:
        with tvm.transform.PassContext(
            opt_level=tvm.transform.PassContext.current().opt_level, config=options
        ):
            yield options
    finally:
        te_compiler.select_implementation = own
        _lowered.clear()


def _noting(own: Callable[..., Any]) -> Callable[..., Any]:
    """TVM's choice of an implementation, and a note of what it computes."""

    def select_implementation(
        op: Op, attrs: Attr, inputs: Sequence[Tensor], out_type: Type, *rest: Any, **options: Any
    ) -> Any:
        implementation, outputs = own(op, attrs, inputs, out_type, *rest, **options)
        _lowered.append(_Lowered(str(op.name), attrs, out_type, list(inputs), list(outputs)))
        return implementation, outputs

    return select_implementation


def lower(func: relay.Function, target: Target) -> PrimFunc:
    """A primitive function (as FuseOps makes them) -> its PrimFunc with op info."""
    func = func.with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    with op_info_attached():
        return te_compiler.lower_to_primfunc(func, make_target(target))


def extract_tasks(
    mod: tvm.IRModule, target: Target, params: Mapping[str, NDArray] | None
) -> list[Any]:
    """MetaSchedule's tuning tasks of a model, their PrimFuncs with op info."""
    from tvm import meta_schedule

    with op_info_attached() as options:
        return list(
            meta_schedule.relay_integration.extract_tasks(
                mod, make_target(target), params, pass_config=options
            )
        )


def _convert(args: Sequence[Tensor], constants: Sequence[NDArray]) -> PrimFunc:
    """TVM's default converter, and op info on what it makes."""
    func = tvm.get_global_func(f"{_OPTION}.default")(args, constants)
    if func is None:
        return None
    names = block_names(list(args))
    if [str(b.name_hint) for b in blocks_of(func)] != list(names.values()):
        logger.warning("op info: the blocks of a PrimFunc are not those of its TE stages")
        return func
    return _described(func, list(args), names, len(args) - len(constants))


def _described(
    func: PrimFunc, args: list[Tensor], names: Mapping[TeOperation, str], params: int
) -> PrimFunc:
    """The function with the ops whose stages it is made of."""
    place: dict[Any, Ref] = {operation: ("block", i) for i, operation in enumerate(names)}
    edges: dict[Any, Source] = {}
    for i, tensor in enumerate(args):
        if isinstance(tensor.op, te.PlaceholderOp):
            edges[_place(tensor)] = of_param(i) if i < params else Source(DATA, i - params)
            if i < params:
                place[tensor.op] = ("param", i)
    here = set(te_order(args))
    ops: list[OpInfo] = []
    refs = []
    seen = {tensor.op for tensor in args if isinstance(tensor.op, te.PlaceholderOp)}
    for lowered in _lowered:
        if not any(tensor.op in here for tensor in lowered.outputs):
            continue  # of another function
        stages = [op for op in te_order(lowered.outputs) if op not in seen]
        seen.update(stages)
        blocks = tuple(names[op] for op in stages if op in names)
        sources = tuple(edges.get(_place(t)) or _number(t) for t in lowered.inputs)
        ops.append(replace(_info(lowered, ops), blocks=blocks, sources=sources))
        edges |= {_place(t): of_op(ops[-1].name, i) for i, t in enumerate(lowered.outputs)}
        ins, outs = ([place.get(t.op) for t in s] for s in (lowered.inputs, lowered.outputs))
        refs.append((ins, outs))
    owners = {block: info.name for info in ops for block in info.blocks}
    func = labelled(func, owners)
    written = [t for t in args[:params] if not isinstance(t.op, te.PlaceholderOp)]
    results = [edges.get(_place(t), UNFOLLOWED) for t in written]
    return attach(func, record(func, ops, refs, results))


def _place(tensor: Tensor) -> tuple[TeOperation, int]:
    """What a tensor is known by: two of no axes cannot be compared."""
    return tensor.op, int(tensor.value_index)


def _number(tensor: Tensor) -> Source:
    """A number that Relay made a stage of."""
    body = list(tensor.op.body) if isinstance(tensor.op, te.ComputeOp) else []
    if len(body) != 1 or not isinstance(body[0], (tvm.tir.IntImm, tvm.tir.FloatImm)):
        return UNFOLLOWED
    return of_constant(body[0].value)


def _info(lowered: _Lowered, before: Sequence[OpInfo]) -> OpInfo:
    kind, attrs = neutral(lowered.name, lowered.attrs, lowered.result)
    if not is_declared(lowered.name):
        attrs = {n: _text(v) for n, v in attrs_dict(lowered.attrs).items()}
    count = sum(info.kind == kind for info in before)
    registered = tvm.ir.Op.get(lowered.name).get_attr("TOpPattern")
    pattern = "" if registered is None else name_of(int(registered))
    ins, outs = ([_type(t) for t in side] for side in (lowered.inputs, lowered.outputs))
    return describe(f"{kind}_{count}" if count else kind, kind, attrs, ins, outs, pattern)


def _type(tensor: Tensor) -> tuple[tuple[int | None, ...], str]:
    shape = tuple(int(e) if isinstance(e, tvm.tir.IntImm) else None for e in tensor.shape)
    return shape, str(tensor.dtype)


def _text(value: Attr) -> Attr:
    found = plain(value)
    is_data = found is None or isinstance(found, (bool, int, float, str, tuple))
    return found if is_data else str(value)


register_func(f"{_OPTION}.{CONVERTER}", _convert, override=True)
