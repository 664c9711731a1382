"""What the partitioner decided, and why: plain records that travel with the module."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import InputError

REPORT = "tefuse.report"  # the module's attribute that carries it
MATCHED, MISSED, REFUSED, TAKEN = "matched", "missed", "refused", "taken"


@dataclass(frozen=True)
class Record:
    """One decision about one composite at one root op."""

    composite: str
    root: str
    status: str  # matched, missed (structure), refused (check or leak), taken (by an earlier one)
    reason: str
    ops: tuple[str, ...] = ()
    symbol: str = ""  # of a match: its external function, which equal matches may share


@dataclass(frozen=True)
class Report:
    """Every decision of one partitioning, and the ops of the model with the composite that took
    them.
    """

    records: tuple[Record, ...]
    ops: tuple[tuple[str, str, str], ...]  # (op name, kind, composite or "")

    @property
    def matched(self) -> list[Record]:
        """What became external functions."""
        return [r for r in self.records if r.status == MATCHED]

    @property
    def counts(self) -> dict[str, int]:
        """Composite -> number of matches."""
        return dict(Counter(r.composite for r in self.matched))

    @property
    def left(self) -> dict[str, int]:
        """Op kind -> number of ops that no composite took."""
        return dict(Counter(kind for _, kind, owner in self.ops if not owner))

    def with_symbols(self, symbols: Mapping[str, str]) -> Report:
        """The report that knows in which external function each match (by root) ended up."""
        records = tuple(
            replace(r, symbol=symbols[r.root]) if r.status == MATCHED else r for r in self.records
        )
        return replace(self, records=records)

    def why_not(self, root: str) -> list[Record]:
        """The decisions against a root op."""
        return [r for r in self.records if r.root == root and r.status != MATCHED]

    def to_json(self) -> str:
        """As JSON; `from_json` is the inverse."""
        return json.dumps({"records": [asdict(r) for r in self.records], "ops": self.ops})

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read what `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        records = (Record(**{**r, "ops": tuple(r["ops"])}) for r in data["records"])
        return cls(tuple(records), tuple(tuple(o) for o in data["ops"]))

    def __str__(self) -> str:
        lines = [f"{count:4} x {name}" for name, count in self.counts.items()] or [
            "   nothing matched"
        ]
        refused: dict[tuple[str, str], list[str]] = {}
        for r in self.records:
            if r.status == REFUSED:
                refused.setdefault((r.composite, r.reason), []).append(r.root)
        for (composite, reason), roots in refused.items():
            more = f" and {len(roots) - 1} more" if len(roots) > 1 else ""
            lines.append(f"  refused {composite} at {roots[0]}{more}: {reason}")
        left = ", ".join(f"{count} {kind}" for kind, count in sorted(self.left.items()))
        return "\n".join([*lines, f"  left to TVM: {left or 'nothing'}"])


def owners(matches: Iterable[Any]) -> dict[int, str]:
    """id of an op -> the composite that took it."""
    return {id(call): m.composite.name for m in matches for call in m.ops}


def report(mod: Any) -> Report:
    """What partitioning decided about this module, and why."""
    text = mod.attrs.get(REPORT) if mod.attrs is not None else None
    if text is None:
        raise InputError("mod: this module was not partitioned by partition_for_tefuse")
    return Report.from_json(str(text))
