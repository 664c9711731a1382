"""Convolutions of levels that lie in another order of axes than kernels of bytes read them in.

The model is partitioned as `optimize_layouts(mod, data_layout="NCHW")` has it, if composites take
more levels then, or fewer convolutions of integers have no schedule of their own. Convolutions of
floats have a kernel in NHWC, too, and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...graph import OpCall, OpGraph
from ...ir.generation import ir as reader
from ...tvm.types import IRModule
from .reorder import reordered

if TYPE_CHECKING:
    from ...language.match.match import Match
    from ..report import Report

LAYOUT = "NCHW"
BYTES = ("int8", "uint8")
Decided = tuple[IRModule, list["Match"], "Report"]


def with_levels_in_order(decided: Decided, decide: Callable[[IRModule], Decided]) -> Decided:
    """A prepared module, its matches and their report; `decide` makes these of another module."""
    prepared, matches, _ = decided
    if not _are_elsewhere(decided):
        return decided
    found = [decided]

    def matched(new: IRModule) -> Sequence[Match]:
        found.append(decide(new))
        return found[-1][1]

    _, told = reordered(prepared, matches, matched, LAYOUT)
    new, matches, report = found[-1]
    is_better = _slow(found[-1]) < _slow(decided)
    return (new, matches, replace(report, layouts=str(told))) if is_better else decided


def _are_elsewhere(decided: Decided) -> bool:
    """Whether one of them, that no kernel of bytes reads, is in another layout."""
    graph = reader.read_as_written(decided[0]["main"]).graph
    slow = _without_schedule(decided, graph)
    if decided[2].left.get("dequantize"):
        slow += [call for call in graph.ops if call.kind == "conv2d" and _is_of_levels(call, graph)]
    return any(call.attrs["data_layout"] != LAYOUT for call in slow)


def _slow(decided: Decided) -> tuple[int, int]:
    """What no kernel of bytes reads: dequantizes, and convolutions of integers."""
    graph = reader.read_as_written(decided[0]["main"]).graph
    return decided[2].left.get("dequantize", 0), len(_without_schedule(decided, graph))


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
