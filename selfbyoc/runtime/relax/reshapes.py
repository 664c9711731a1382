"""Relax: reshapes of open sizes, as TVM fuses them. It writes their elements by flat places, modulo
each extent (0.27), and takes one with a symbol among those for no op that may be fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from ...tvm import param_buffers, structural_equal, te, tir, tvm
from ...tvm.symbolic import symbols
from ...tvm.types import Expr, PrimExpr, PrimFunc


@tvm.transform.module_pass(opt_level=0, name="ReshapesWithin")
def reshapes_within(mod: tvm.IRModule, _: object) -> tvm.IRModule:
    """A reshape that leaves the axes of open sizes as they are is one of the axes between."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        is_open = isinstance(func, tir.PrimFunc) and symbols(func)
        if is_open and relax.analysis.has_reshape_pattern(func):
            made = _within(func)
            if made is not None:
                done.update_func(gv, made)
    return done


def _within(func: PrimFunc) -> PrimFunc | None:
    """The reshape by its axes, None where one of those that change is open or 0."""
    buffers = param_buffers(func)
    if len(buffers) != 2 or not all(hasattr(b, "shape") for b in buffers):
        return None
    old, new = (list(buffer.shape) for buffer in buffers)
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    before, after = old[first : len(old) - last], new[first : len(new) - last]
    if not all(isinstance(extent, tir.IntImm) and extent > 0 for extent in (*before, *after)):
        return None
    data = te.placeholder(old, buffers[0].dtype, name=buffers[0].name)

    def element(*i: PrimExpr) -> Expr:
        place: Any = tir.IntImm("int64", 0)
        for index, extent in zip(i[first : len(new) - last], after, strict=True):
            place = place * extent + index
        found: list[Any] = []
        for extent in reversed(before):
            found.insert(0, tir.floormod(place, extent))
            place = tir.floordiv(place, extent)
        return data(*i[:first], *found, *i[len(new) - last :])

    made = te.create_prim_func([data, te.compute(new, element, name=buffers[1].name)])
    for name, value in func.attrs.items():
        made = made.with_attr(name, value)
    return made.without_attr("global_symbol")


def _common(one: Sequence[PrimExpr], other: Sequence[PrimExpr]) -> int:
    """How many extents are the same, from the first on."""
    count = 0
    while count < min(len(one), len(other)) and structural_equal(one[count], other[count]):
        count += 1
    return count
