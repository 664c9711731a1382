"""How much of a model each kernel is: of the time, if that was measured, else of the operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...analysis.melting.records import Melting
from ...analysis.melting.text import number
from ...partition.report import Report


@dataclass(frozen=True)
class Parts:
    """By root op: milliseconds, or operations."""

    of: Mapping[str, float]
    total: float  # with all that is outside of kernels, where that is known
    is_time: bool
    is_quiet: bool = True  # whether nothing disturbed what was measured

    @property
    def told(self) -> str:
        """What a share is of."""
        return "time" if self.is_time else "operations"

    def sum(self, roots: Iterable[str]) -> float:
        """Of several kernels."""
        return sum(self.of.get(root, 0.0) for root in roots)

    def share(self, roots: Iterable[str]) -> float:
        """From 0 to 1."""
        return self.sum(roots) / self.total if self.total else 0.0

    def percent(self, roots: Iterable[str]) -> str:
        """`7%`, `<1%`."""
        return percent(self.share(roots))

    def amount(self, roots: Iterable[str]) -> str:
        """`0.412 ms`, `1.03 GFLOP`."""
        found = self.sum(roots)
        return f"{found:.3f} ms" if self.is_time else f"{number(found)}FLOP"

    def text(self, root: str) -> str:
        """`0.412 ms · 7%`; nothing where nothing was measured."""
        known = self.is_time and root in self.of
        return f"{self.amount([root])} · {self.percent([root])}" if known else ""


def percent(share: float) -> str:
    """`7%`, `<1%`."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def names(report: Report) -> dict[str, str]:
    """What each kernel (by its root) is in the model that was imported: the name of its op that
    computes most.
    """
    origins, work = dict(report.origins), {name: flops for name, _, flops in report.costs}
    found = {}
    for record in report.matched:
        named = [op for op in record.ops if op in origins]
        heaviest = max(named, key=lambda op: work.get(op, 0), default=None)
        if heaviest is not None:
            found[record.root] = origins[heaviest]
    return found


def parts(report: Report, melting: Melting | None) -> Parts:
    """From what was measured, or from what the ops of each kernel compute."""
    kernels = [k for k in melting.kernels if k.timing] if melting else []
    times = {root: k.timing.milliseconds for k in kernels if k.timing for root in k.roots}
    if melting and times:
        outside = sum(each.milliseconds for each in melting.outside)
        quiet = all(k.timing.quiet for k in kernels if k.timing)
        return Parts(times, sum(times.values()) + outside, True, quiet)
    flops = {name: float(count) for name, _, count in report.costs}
    found = {r.root: sum(flops.get(name, 0.0) for name in r.ops) for r in report.matched}
    return Parts(found, sum(flops.values()), False)
