"""Relay: what slices read of a value."""

from __future__ import annotations

from tvm import relay

from ...ir.relay.rewrite import type_of
from ...ops.attrs import plain
from ...tvm.types import Expr
from ..cut import Cut


def cut_of(value: Expr) -> Cut | None:
    """What a slice with a step of one reads, of one axis; the others whole."""
    if not isinstance(value, relay.Call) or value.op.name != "strided_slice":
        return None
    (x,), attrs = value.args, value.attrs
    extents = [int(n) if hasattr(n, "value") else None for n in type_of(x).shape]
    given = (plain(each) for each in (attrs.begin, attrs.end, attrs.strides, attrs.axes))
    begins, ends, steps, axes = (each or () for each in given)
    if str(attrs.slice_mode) != "end" or any(step != 1 for step in steps):
        return None
    found = []
    for axis, begin, end in zip(axes or range(len(begins)), begins, ends, strict=True):
        extent = extents[axis]
        if extent is None:
            return None
        begin, end = (min(n + extent if n < 0 else n, extent) for n in (begin, end))
        if (begin, end) != (0, extent):
            found.append(Cut(x, axis % len(extents), begin, end))
    return found[0] if len(found) == 1 and 0 <= found[0].begin < found[0].end else None
