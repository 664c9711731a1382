"""Convolutions and pools that lie in another order of axes than most kernels read them in.

The model is partitioned as `optimize_layouts(mod, data_layout="NCHW")` has it, if composites take
more levels then, or fewer convolutions of integers have no schedule of their own: there are no
kernels of bytes in NHWC. Of floats there is one: it is done if fewer bytes are transposed then, as
after TVM's ConvertLayout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...graph import OpCall, OpGraph
from ...ir.generation import ir as reader
from ...tvm.types import IRModule
from .generation import ir
from .record import Layouts
from .reorder import reordered

if TYPE_CHECKING:
    from ...language.match.match import Match
    from ..report import Report

LAYOUT = "NCHW"
BYTES = ("int8", "uint8")
Decided = tuple[IRModule, list["Match"], "Report"]


def in_order(decided: Decided, decide: Callable[[IRModule], Decided]) -> Decided:
    """A prepared module, its matches and their report; `decide` makes these of another module."""
    prepared, matches, before = decided
    graph = reader.read_as_written(prepared["main"]).graph
    of_levels = any(map(_is_elsewhere, _slow(decided, graph)))
    moves = [call for call in graph.ops if ir.transposed(call)]
    by_tvm = any(call.kind == "layout_transform" for call in moves)
    was_moved = by_tvm or bool(before.layouts) or any(map(_is_elsewhere, graph.ops))
    if not of_levels and not (moves and was_moved):
        return decided
    found = [decided]

    def matched(new: IRModule) -> Sequence[Match]:
        found.append(decide(new))
        return found[-1][1]

    _, told = reordered(prepared, matches, matched, LAYOUT)
    new, taken, report = found[-1]
    said = "; ".join(filter(None, (before.layouts, str(told))))
    better = _is_better(decided, found[-1]) if of_levels else _pays(decided, taken, told)
    return (new, taken, replace(report, layouts=said)) if better else decided


def ops_taken(matches: Sequence[Match]) -> int:
    """How many ops composites take, but for those that only move."""
    return sum(call.kind not in ("transpose", "reshape") for m in matches for call in m.ops)


def _pays(decided: Decided, taken: Sequence[Match], told: Layouts) -> bool:
    """Whether composites take more, and no more bytes are transposed; or as much, with fewer bytes
    than as it was and than the best plan that leaves convolutions where they are.
    """
    before, now = ops_taken(decided[1]), ops_taken(taken)
    if now != before or told.bytes_left >= told.bytes_written:
        return now > before and told.bytes_left <= told.bytes_written
    _, others = reordered(decided[0], decided[1], lambda _: decided[1], None)
    return told.bytes_left < others.bytes_left


def _is_elsewhere(call: OpCall) -> bool:
    """Whether it is an op of images in another order of axes."""
    layout = call.attrs.get("data_layout") or call.attrs.get("layout") or LAYOUT
    return layout != LAYOUT and sorted(str(layout)) == sorted(LAYOUT)


def _is_better(decided: Decided, new: Decided) -> bool:
    return _left(new) < _left(decided)


def _left(decided: Decided) -> tuple[int, int]:
    """What no kernel of bytes reads: dequantizes, and convolutions of integers."""
    graph = reader.read_as_written(decided[0]["main"]).graph
    return decided[2].left.get("dequantize", 0), len(_without_schedule(decided, graph))


def _slow(decided: Decided, graph: OpGraph) -> list[OpCall]:
    """The convolutions of levels that no kernel of bytes reads."""
    found = _without_schedule(decided, graph)
    if decided[2].left.get("dequantize"):
        found += [
            call for call in graph.ops if call.kind == "conv2d" and _is_of_levels(call, graph)
        ]
    return found


def _without_schedule(decided: Decided, graph: OpGraph) -> list[OpCall]:
    """The convolutions of integers, in the module as it is written, that no composite with a
    schedule of its own takes.
    """
    own = (m for m in decided[1] if m.composite.kernel or m.composite.schedule)
    taken = {source for match in own for call in match.ops for source in call.sources}
    convs = (call for call in graph.ops if call.kind == "conv2d" and _is_of_integers(call))
    return [conv for conv in convs if taken.isdisjoint(conv.sources)]


def _is_of_levels(conv: OpCall, graph: OpGraph) -> bool:
    makers = map(graph.producer, conv.inputs)
    return all(made is not None and made.kind == "dequantize" for made in makers)


def _is_of_integers(conv: OpCall) -> bool:
    return all(value.dtype in BYTES for value in conv.inputs)
