"""What a partitioning did to a model, as rows for a table or a page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..analysis.explain.grouping import Left, left
from ..partition.report import Report

__all__ = ["Left", "Taken", "left", "taken"]


@dataclass(frozen=True)
class Taken:
    """A composite that matched."""

    composite: str
    count: int
    ops: int
    why: str
    levels: tuple[str, ...] = ()  # which schedules its kernels take, where that is known


def taken(report: Report) -> list[Taken]:
    """The composites that matched, most ops first."""
    sizes = Counter(owner for _, _, owner in report.ops if owner)
    why = {r.composite: r.reason for r in report.matched}
    levels: dict[str, dict[str, None]] = {}
    for r in report.matched:
        levels.setdefault(r.composite, {})[r.level] = None
    rows = [
        Taken(name, count, sizes[name], why[name], tuple(filter(None, levels[name])))
        for name, count in report.counts.items()
    ]
    return sorted(rows, key=lambda row: -row.ops)
