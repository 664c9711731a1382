"""What passes that move layouts did to a model, undone where composites take more of it then.

AlterOpLayout, ConvertLayout   blocks of channels (NCHW8c, OIHW16i16o): folded back
AlterOpImpl                    on elements: ops again, their layouts folded back
ConvertLayout to NHWC          in NCHW, where fewer bytes are transposed then (in_order.py)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...graph import OpCall, OpGraph
from ...ir.generation import ir as reader
from ...tvm.types import IRModule
from .folded_back import CONVOLUTIONS, DENSE, LAYOUTS, folded_back
from .in_order import Decided, in_order, ops_taken


def undone(decided: Decided, decide: Callable[[IRModule], Decided]) -> Decided:
    """A prepared module, its matches and their report; `decide` makes these of another module."""
    plain = _without_blocks(decided, decide)
    if plain is not None:
        found = in_order(plain, decide)
        if ops_taken(found[1]) > ops_taken(decided[1]):
            return found
    return in_order(decided, decide)


def _without_blocks(decided: Decided, decide: Callable[[IRModule], Decided]) -> Decided | None:
    """The same without blocked layouts; None if there are none."""
    before = reader.read_as_written(decided[0]["main"]).graph
    if not any(map(_has_blocks, before.ops)):
        return None
    plain, how = folded_back(decided[0])
    if not how.count and not how.raised:
        return None
    new, matches, report = decide(plain)
    said = [f"{how.raised} lowered functions are ops again"] if how.raised else []
    if how.count:
        left = _moves(reader.read_as_written(new["main"]).graph)
        said += [
            f"{how.count} ops in {', '.join(sorted(how.layouts)) or 'blocks'} folded back",
            f"{_moves(before)} layout_transforms before, {left} now",
        ]
    return new, matches, replace(report, layouts="; ".join(said))


def _has_blocks(call: OpCall) -> bool:
    """Whether an op is one of blocks of channels, as far as it is read."""
    if call.kind in ("layout_transform", "call_tir", *CONVOLUTIONS, DENSE):
        return True
    layouts = (str(call.attrs.get(name, "A")) for name in LAYOUTS)
    return not all(layout.isalpha() for layout in layouts)


def _moves(graph: OpGraph) -> int:
    return sum(call.kind == "layout_transform" for call in graph.ops)
