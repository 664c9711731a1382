"""What a builder knows of the ops that it stacked: their info, and the buffers of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..graph import OpCall, Value
from ..tvm import te
from ..tvm.types import TeOperation
from .info.op_info import OpInfo
from .info.op_record import Ref
from .info.source import UNFOLLOWED, Source, of_constant, of_op, of_param
from .plan import bare

if TYPE_CHECKING:
    from .tensors import Tensors


def infos(
    builder: Tensors, joined: Mapping[OpCall, str], names: Mapping[TeOperation, str]
) -> tuple[OpInfo, ...]:
    """The ops in order, with the names of their blocks; what no op made is the last one's. Of those
    that `joined` others: by whose blocks they are computed.
    """
    root = builder.match.root if callable(builder.composite.compute) else None
    *before, last = (_info(builder, call, joined, names, root) for call in builder.described)
    owned = {name for info in (*before, last) for name in info.blocks}
    rest = tuple(name for name in names.values() if name not in owned)
    return (*before, replace(last, blocks=(*last.blocks, *rest)))


def _info(
    builder: Tensors,
    call: OpCall,
    joined: Mapping[OpCall, str],
    names: Mapping[TeOperation, str],
    root: OpCall | None,
) -> OpInfo:
    blocks = tuple(names[op] for op in builder.stages.get(call, ()) if op in names)
    within = "" if blocks else joined.get(call, "")
    apart = root is None or call is root or not call.sources or blocks or within
    if not apart and root is not None:
        within = root.name
    came = tuple(source_of(builder, value) for value in call.inputs)
    name = builder.composite.name
    return replace(bare(call), blocks=blocks, within=within, composite=name, sources=came)


def refs(builder: Tensors, order: Sequence[TeOperation]) -> list[tuple[list[Ref], list[Ref]]]:
    """Which buffer holds each input and output of the ops, `order` being that of the blocks."""
    position = {operation: i for i, operation in enumerate(order)}
    params = {p.op: i for i, p in enumerate(builder.params)}

    def ref(value: Value) -> Ref:
        tensor = builder.tensors.get(value)
        if not isinstance(tensor, te.Tensor):  # it is within another op, or nobody needs it
            return None
        if tensor.op in params:
            return ("param", params[tensor.op])
        return ("block", position[tensor.op]) if tensor.op in position else None

    return [([*map(ref, c.inputs)], [*map(ref, c.outputs)]) for c in builder.described]


def source_of(builder: Tensors, value: Value) -> Source:
    """Where a value that an op reads, or that is returned, comes from."""
    graph = builder.graph
    call = graph.producer(value)
    if call in builder.described:
        return of_op(call.name, call.outputs.index(value))
    tensor = builder.tensors.get(value)
    position = next((i for i, p in enumerate(builder.params) if p is tensor), None)
    if position is not None:  # also what is read of it through ops, where it comes packed
        return of_param(position)
    if value.scalar is not None:
        return of_constant(value.scalar)
    if value in graph.inputs:
        return of_param(graph.inputs.index(value))
    # An op that no stage computes: its result is its input.
    same = [v for v in call.inputs if builder.tensors.get(v) is tensor] if call else []
    return source_of(builder, same[0]) if same and tensor is not None else UNFOLLOWED


def results_of(builder: Tensors) -> list[Source]:
    """What each output of the function holds."""
    return [source_of(builder, value) for value in builder.graph.outputs]
