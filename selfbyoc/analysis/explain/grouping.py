"""Records with one reason put together: the same reason at 57 places is one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...ir.declare import line_for
from ...language.match.miss import ANOTHER, NO_OP
from ...partition.report import BROKEN, MATCHED, MISSED, REFUSED, Record, Report


@dataclass(frozen=True)
class Group:
    """Equal decisions about one composite."""

    composite: str
    status: str
    reason: str  # as at the first root
    roots: tuple[str, ...]
    hint: str = ""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.roots)

    def __str__(self) -> str:
        more = f" and {self.count - 1} more" if self.count > 1 else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.composite} at {self.roots[0]}{more}, {self.status}: {self.reason}{hint}"


@dataclass(frozen=True)
class Left:
    """Ops of one kind that no composite took, for one reason."""

    kind: str
    count: int
    why: str
    bytes: int = 0  # that they read and write, each as an op of its own
    flops: int = 0
    share: float = 0.0  # of the bytes that all ops of the model would

    @property
    def cost(self) -> str:
        """`1.2 MB (3%), 0.4 MFLOP`."""
        return f"{self.bytes / 1e6:.3g} MB ({self.share:.0%}), {self.flops / 1e6:.3g} MFLOP"


def grouped(records: Iterable[Record]) -> list[Group]:
    """By composite, status and reason, in the order of the records."""
    found: dict[tuple[str, ...], list[Record]] = {}
    for r in records:
        key = (r.composite, r.status, without_numbers(r.reason), without_numbers(r.hint))
        found.setdefault(key, []).append(r)
    return [
        Group(rs[0].composite, rs[0].status, rs[0].reason, tuple(r.root for r in rs), rs[0].hint)
        for rs in found.values()
    ]


def levels(report: Report) -> list[Group]:
    """What became kernels: composite, and the level with its reason."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for r in report.matched:
        found.setdefault((r.composite, r.level, r.level_reason), []).append(r.root)
    return [
        Group(name, level, f"{level}: {reason}" if level else "", tuple(roots))
        for (name, level, reason), roots in found.items()
    ]


def nearly(report: Report) -> list[Group]:
    """What nearly became a kernel: refused; or more than half of the longest way through the
    pattern fitted (half will do for an op that is left to TVM), where none was refused and no
    earlier composite, or this one, took the root.
    """
    order = {c.name: i for i, c in enumerate(report.composites)}
    depth = {c.name: c.depth for c in report.composites}
    owner = {name: composite for name, _, composite in report.ops}
    refused = {r.root for r in report.records if r.status in (REFUSED, BROKEN)}

    def is_near(r: Record) -> bool:
        if r.root in refused:
            return r.status in (REFUSED, BROKEN)
        taker = owner.get(r.root, "")
        free = not taker or order[taker] > order[r.composite]
        fitted = 2 * r.fitted - depth[r.composite] + (not taker)
        # Where the model begins, every longer pattern ends: that is near nothing. Nor is a dense
        # convolution nearly a depthwise one.
        near = r.cause not in (NO_OP, ANOTHER) and r.fitted > 0 and (fitted > 0 or bool(r.hint))
        return r.status == MISSED and free and near

    return grouped(filter(is_near, report.records))


def left(report: Report) -> list[Left]:
    """The ops that stayed with TVM by kind and reason, most frequent first."""
    at, about = _by_op(report)
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, kind, taker in report.ops:
        if taker:
            continue
        why = _reason(report, kind, at.get(name, ()), about.get(name, ()))
        found.setdefault((kind, without_numbers(why)), []).append((name, why))
    costs = {name: (moved, flops) for name, moved, flops in report.costs}
    rows = [_left(kind, ops, costs) for (kind, _), ops in found.items()]
    return sorted(rows, key=lambda row: -row.count)


def _left(kind: str, ops: Sequence[tuple[str, str]], costs: Mapping[str, tuple[int, int]]) -> Left:
    """One row: ops with their reasons, all the same but for numbers."""
    mine = [costs[name] for name, _ in ops if name in costs]
    moved, flops = (sum(cost[n] for cost in mine) for n in range(2))
    total = sum(moved for moved, _ in costs.values())
    return Left(kind, len(ops), ops[0][1], moved, flops, moved / total if total else 0.0)


def _by_op(report: Report) -> tuple[dict[str, list[Record]], dict[str, list[Record]]]:
    """The decisions against each op as a root, and those that name it otherwise."""
    at: dict[str, list[Record]] = {}
    about: dict[str, list[Record]] = {}
    for r in report.records:
        if r.status == MATCHED:
            continue
        at.setdefault(r.root, []).append(r)
        for name in dict.fromkeys((r.where, *r.ops)):
            about.setdefault(name, []).append(r)
    return at, about


def _reason(report: Report, kind: str, at: Iterable[Record], about: Iterable[Record]) -> str:
    """The composite that got furthest: with the op as its root, else on the way to another."""
    names = [c.name for c in report.composites if kind in c.kinds]
    depth = {c.name: c.depth for c in report.composites}
    if not names:
        hint = next((f"; {r.hint}" for r in about if r.hint), "")
        line = None if hint else line_for(kind)
        told = f"; nobody declared it: {line}" if line else hint
        return f"no composite has this op{told}"
    for records in (list(at), [r for r in about if r.composite in names]):
        if records:
            r = max(records, key=lambda r: (r.status != MISSED, r.fitted / depth[r.composite]))
            hint = f" ({r.hint})" if r.hint else ""
            return f"{r.composite}: {r.reason}{hint}"
    return f"only inside {', '.join(names)}, none of which came near"


def without_numbers(reason: str) -> str:
    """`conv2d_12` -> `conv2d`, `float32[?, 8]` -> `float32`: the same reason at many places is one
    reason.
    """
    reason = re.sub(r"\b(\w+)\[[^\]]*\]", r"\1", reason)
    return re.sub(r"\b([a-z_]*[a-z]\w*?)_\d+\b", r"\1", reason)
