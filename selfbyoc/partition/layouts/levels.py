"""Convolutions of levels that lie in another order of axes than kernels of bytes read them in.

The model is partitioned as `optimize_layouts(mod, data_layout="NCHW")` has it, if composites take
more levels then. Convolutions of floats have a kernel in NHWC, too, and stay.
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
Decided = tuple[IRModule, list["Match"], "Report"]


def with_levels_in_order(decided: Decided, decide: Callable[[IRModule], Decided]) -> Decided:
    """A prepared module, its matches and their report; `decide` makes these of another module."""
    prepared, matches, report = decided
    if not report.left.get("dequantize") or not _are_elsewhere(prepared):
        return decided
    found = [decided]

    def matched(new: IRModule) -> Sequence[Match]:
        found.append(decide(new))
        return found[-1][1]

    _, told = reordered(prepared, matches, matched, LAYOUT)
    *_, (new, matches, report) = found
    is_better = report.left.get("dequantize", 0) < decided[2].left["dequantize"]
    return (new, matches, replace(report, layouts=str(told))) if is_better else decided


def _are_elsewhere(prepared: IRModule) -> bool:
    graph = reader.read_as_written(prepared["main"]).graph
    return any(_is_elsewhere(call, graph) for call in graph.ops if call.kind == "conv2d")


def _is_elsewhere(conv: OpCall, graph: OpGraph) -> bool:
    makers = map(graph.producer, conv.inputs)
    is_of_levels = all(made is not None and made.kind == "dequantize" for made in makers)
    return is_of_levels and conv.attrs["data_layout"] != LAYOUT
