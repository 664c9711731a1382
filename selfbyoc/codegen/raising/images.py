"""A plan of layouts: every image of a function in one, if all of its ops have a form in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...errors import InputError, RaiseError
from ...tvm import Schedule, TVMError, child_blocks, region_buffer, tvm
from ...tvm.types import Block, PrimFunc
from ..info.accesses import label_of
from ..info.layout_map import LayoutMap
from ..info.op_info import op_info, recorded_of
from ..info.op_record import Recorded
from ..info.source import PARAM
from .changes import from_letters
from .parameter_layouts import index_map, with_parameter_layouts, without_symbol
from .raising import raise_ops

logger = logging.getLogger(__name__)

Plan = Callable[[PrimFunc], PrimFunc]


def images_in(layout: str) -> Plan:
    """Images are tensors of four axes that are no weights; those of a fused function's inner
    buffers too. A function whose ops have no form in the layout is returned as it is.
    """
    try:
        moved = from_letters("NCHW", layout)
    except ValueError as err:
        raise InputError(f"plan: expected an order of NCHW, found {layout!r}") from err

    def plan(func: PrimFunc) -> PrimFunc:
        recorded = recorded_of(func)
        params = [] if recorded is None else list(_images(func, recorded, moved))
        if not params or recorded is None:
            return func
        try:
            new = with_parameter_layouts(func, dict.fromkeys(params, index_map(moved)))
            new = _with_inner(new, recorded, moved)
            raise_ops(new, materialize=False)
        except (RaiseError, TVMError, RuntimeError) as err:
            logger.info("a function stays in its layout: %s", err)
            return func
        return new

    return plan


def _images(func: PrimFunc, recorded: Recorded, moved: LayoutMap) -> Iterator[int]:
    """The parameters that are images."""
    letters = {
        source.index: tensor.layout
        for info in op_info(func)
        for source, tensor in zip(info.sources, info.inputs, strict=True)
        if source.kind == PARAM
    }
    for param, buffer in enumerate(recorded.accesses.params):
        fits = _fits(recorded.accesses.shapes[buffer], moved)
        if fits and letters.get(param) in (None, "NCHW"):
            yield param


def _fits(shape: Sequence[Any], moved: LayoutMap) -> bool:
    factors = {part.axis: part.factor for part in moved.parts if part.factor > 1}
    return len(shape) == 4 and all(
        isinstance(shape[a], int) and shape[a] % f == 0 for a, f in factors.items()
    )


def _with_inner(func: PrimFunc, recorded: Recorded, moved: LayoutMap) -> PrimFunc:
    """The function with what its ops hand each other in the layout as well."""
    begin = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})  # kept: see apply.py
    sch = Schedule(begin)
    blocks = {label_of(sch.get(block)): block for block in child_blocks(sch)}
    params = set(recorded.accesses.params)
    for block in _writers(recorded, params, blocks):
        if _fits([int(e) for e in region_buffer(sch.get(block).writes[0]).shape], moved):
            sch.transform_layout(block, ("write", 0), index_map(moved))
    return without_symbol(sch.mod["main"], func)


def _writers(recorded: Recorded, params: set[int], blocks: dict[str, Block]) -> Iterator[Block]:
    for info, (_, outs) in zip(recorded.ops, recorded.refs, strict=True):
        for ref in outs:
            if ref is None or ref[0] != "block":
                continue
            written = recorded.accesses.blocks[ref[1]]
            if written.stores[0].buffer not in params and f"{info.name}:{ref[1]}" in blocks:
                yield blocks[f"{info.name}:{ref[1]}"]
