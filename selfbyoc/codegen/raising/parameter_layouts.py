"""A PrimFunc with parameters in other layouts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from ...errors import RaiseError
from ...tvm import Schedule, child_blocks, param_buffers, region_buffer, tvm
from ...tvm.types import Block, Buffer, PrimExpr, PrimFunc
from ..info.layout_map import INNER, OUTER, LayoutMap, Part

IndexMap = Callable[..., Sequence[PrimExpr]]


def with_parameter_layouts(func: PrimFunc, maps: Mapping[int, IndexMap]) -> PrimFunc:
    """`transform_layout` of parameters, by position. Raises RaiseError for one that no block reads
    or writes, and what the schedule raises.
    """
    begin = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})  # kept: see apply.py
    sch = Schedule(begin)
    for param, index_map in maps.items():
        buffer = [b for b in param_buffers(sch.mod["main"]) if hasattr(b, "shape")][param]
        block, side = _access(sch, param, buffer)
        sch.transform_layout(block, side, index_map)
    return without_symbol(sch.mod["main"], func)


def without_symbol(done: PrimFunc, func: PrimFunc) -> PrimFunc:
    """What a schedule made of a function, without the symbol that it was given for that; with its
    own, if it has one.
    """
    names = [] if func.attrs is None else [str(n) for n in func.attrs.keys()]  # noqa: SIM118
    if "global_symbol" in names:
        return done.with_attr("global_symbol", func.attrs["global_symbol"])
    return done.without_attr("global_symbol")


def _access(sch: Schedule, param: int, buffer: Buffer) -> tuple[Block, tuple[str, int]]:
    for block in child_blocks(sch):
        stmt = sch.get(block)
        for side, regions in (("read", stmt.reads), ("write", stmt.writes)):
            for index, region in enumerate(regions):
                if region_buffer(region).same_as(buffer):
                    return block, (side, index)
    raise RaiseError.of("", f"parameter {param}", "no block reads or writes it")


def index_map(layout: LayoutMap) -> IndexMap:
    """A layout as TVM takes it: a function of the old indices."""

    def new(part: Part, old: Sequence[PrimExpr]) -> PrimExpr:
        if part.half == OUTER:
            return old[part.axis] // part.factor
        return old[part.axis] % part.factor if part.half == INNER else old[part.axis]

    def mapped(*old: PrimExpr) -> list[PrimExpr]:
        return [new(part, old) for part in layout.parts]

    # TVM reads off the function's signature how many indices there are.
    kind = inspect.Parameter.POSITIONAL_ONLY
    axes = range(len({part.axis for part in layout.parts}))
    named = [inspect.Parameter(f"i{axis}", kind) for axis in axes]
    mapped.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return mapped
