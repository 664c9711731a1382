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
    before = _wrong(decided)
    if not any(before):
        return decided
    found = [decided]

    def matched(new: IRModule) -> Sequence[Match]:
        found.append(decide(new))
        return found[-1][1]

    _, told = reordered(prepared, matches, matched, LAYOUT)
    new, matches, report = found[-1]
    is_better = _wrong(found[-1]) < before
    return (new, matches, replace(report, layouts=str(told))) if is_better else decided


def _wrong(decided: Decided) -> tuple[int, int]:
    """How many dequantizes are left beside convolutions that lie elsewhere, and how many of these
    are of integers, with no schedule of their own.
    """
    prepared, matches, report = decided
    graph = reader.read_as_written(prepared["main"]).graph
    elsewhere = [c for c in graph.ops if c.kind == "conv2d" and c.attrs["data_layout"] != LAYOUT]
    own = (m for m in matches if m.composite.kernel or m.composite.schedule)
    scheduled = {source for match in own for call in match.ops for source in call.sources}
    integers = [c for c in elsewhere if _is_of_integers(c) and scheduled.isdisjoint(c.sources)]
    is_left = any(_is_of_levels(call, graph) for call in elsewhere)
    return report.left.get("dequantize", 0) if is_left else 0, len(integers)


def _is_of_levels(conv: OpCall, graph: OpGraph) -> bool:
    makers = map(graph.producer, conv.inputs)
    return all(made is not None and made.kind == "dequantize" for made in makers)


def _is_of_integers(conv: OpCall) -> bool:
    return all(value.dtype in BYTES for value in conv.inputs)
