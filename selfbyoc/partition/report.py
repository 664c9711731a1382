"""What the partitioner decided, and why: plain records that travel with the module."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from ..codegen.apply import DEFAULT
from ..common import structured
from ..errors import InputError
from ..graph import OpCall, sizes_text
from ..language.declared import Declared
from ..tvm.types import IRModule

if TYPE_CHECKING:
    from ..language.match.match import Match

REPORT = "tefuse.report"  # the module's attribute that carries it
# missed: the structure differs; refused: by its check, or it cannot be cut out; taken: by an
# earlier composite; part: a larger match of the same composite holds it; broken: its check, or a
# predicate on an attribute, raised; unfused: it was matched, and `unfuse` took it apart again.
MATCHED, MISSED, REFUSED, TAKEN, PART, BROKEN, UNFUSED = (
    "matched", "missed", "refused", "taken", "part", "broken", "unfused",
)  # fmt: skip
FALLBACK = "fallback"  # cause: a built-in composite raised in the build
_LAST: list[tuple[str, Report]] = []  # that was written, and its JSON: most often read next
STATUSES = (MATCHED, MISSED, REFUSED, TAKEN, PART, BROKEN, UNFUSED)


@dataclass(frozen=True)
class Record:
    """One decision about one composite at one root op. Fields that do not apply are empty."""

    composite: str
    root: str
    status: str  # one of the names above
    reason: str
    ops: tuple[str, ...] = ()
    symbol: str = ""  # of a match: its external function, which equal matches may share
    # Of a match: the values that stay in the kernel, as (producer, consumer, type), and what each
    # argument stands for, as (argument, type, the op that computes it, "input" or "constant").
    edges: tuple[tuple[str, str, str], ...] = ()
    args: tuple[tuple[str, str, str], ...] = ()
    level: str = ""  # of a match, for one target: which schedule it takes
    level_reason: str = ""
    plan: str = ""  # tiles, blocks and tasks of the kernel, where its composite plans them
    # Of everything else, and of a kernel that fell back: what stood in the way, and where.
    cause: str = ""
    where: str = ""  # an op, an argument of the pattern, or an input of the model
    wanted: str = ""
    found: str = ""
    attribute: str = ""
    also: tuple[str, ...] = ()  # differences that are as near, on other ways through the pattern
    fitted: int = 0  # the ops that fitted before the difference
    reader: str = ""  # who uses a value of the group outside it: an op, or "output"
    owner: str = ""  # the composite that took the ops, and the root of its match
    owner_root: str = ""
    hint: str = ""  # why an importer's form could not be read away

    def data(self) -> dict[str, str]:
        """The fields that apply, by name."""
        return {n: v for n, v in vars(self).items() if v != _DEFAULTS[n]}


_DEFAULTS = {f.name: f.default for f in fields(Record)}


@dataclass(frozen=True)
class Report:
    """Every decision of one partitioning, and the ops of the model with the composite that took
    them.
    """

    records: tuple[Record, ...]
    ops: tuple[tuple[str, str, str], ...]  # (op name, kind, composite or "")
    composites: tuple[Declared, ...] = ()  # those that were asked, in order of priority
    edges: tuple[tuple[str, str], ...] = ()  # (producer, consumer) of the whole model
    # (op as it was written, its kind, the op that it was read as or as part of)
    absorbed: tuple[tuple[str, str, str], ...] = ()
    problems: tuple[str, ...] = ()  # what went wrong in explaining, not in partitioning
    layouts: str = ""  # what `optimize_layouts` did before, if it was called
    # (op, bytes that it reads and writes as one of its own, operations), where shapes are known
    costs: tuple[tuple[str, int, int], ...] = ()
    # (op, its name in the model that was imported), where that is known
    origins: tuple[tuple[str, str], ...] = ()
    # (symbolic size, the number at which it was read): costs and plans are of these
    sizes: tuple[tuple[str, int], ...] = ()

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

    @property
    def at(self) -> str:
        """`n=131`: what costs and plans are of; empty without symbolic sizes."""
        return sizes_text(dict(self.sizes))

    def with_misses_of(self, first: Report, kinds: Sequence[str]) -> Report:
        """With what another decision says of composites of some ops that did not match, as the
        model had more of these ops then.
        """
        names = {told.name for told in first.composites if not set(kinds).isdisjoint(told.kinds)}

        def is_miss(record: Record) -> bool:
            return record.composite in names and record.status != MATCHED

        kept = [record for record in self.records if not is_miss(record)]
        return replace(self, records=(*kept, *filter(is_miss, first.records)))

    def with_symbols(self, symbols: Mapping[str, str]) -> Report:
        """The report that knows in which external function each match (by root) ended up."""
        records = tuple(
            replace(r, symbol=symbols[r.root]) if r.status == MATCHED else r for r in self.records
        )
        return replace(self, records=records)

    def with_levels(self, reason_of: Callable[[str], str]) -> Report:
        """The report that knows which kernels (by symbol) took the default schedule, and why."""
        reasons = {r.symbol: reason_of(r.symbol) for r in self.matched}
        records = tuple(
            replace(r, cause=FALLBACK, level=DEFAULT, level_reason=reasons[r.symbol])
            if reasons.get(r.symbol)
            else r
            for r in self.records
        )
        return replace(self, records=records)

    def why_not(self, root: str) -> list[Record]:
        """The decisions against a root op."""
        return [r for r in self.records if r.root == root and r.status != MATCHED]

    def data(self) -> dict[str, object]:
        """As what JSON can hold."""
        return {
            "records": [r.data() for r in self.records],
            "ops": self.ops,
            "composites": [vars(c) for c in self.composites],
            "edges": self.edges,
            "absorbed": self.absorbed,
            "problems": self.problems,
            "layouts": self.layouts,
            "costs": self.costs,
            "origins": self.origins,
            "sizes": self.sizes,
        }

    def to_json(self) -> str:
        """As JSON; `from_json` is the inverse."""
        text = json.dumps(self.data())
        _LAST[:] = [(text, self)]
        return text

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read what `to_json` wrote. Raises InputError that names the field."""
        for known, found in _LAST:
            if known == text:
                return found
        try:
            return cls.from_data(structured.loads(text))
        except ValueError as err:
            raise InputError(f"mod: its attribute {REPORT} is damaged: {err}") from err

    @classmethod
    def from_data(cls, data: object) -> Report:
        """The inverse of `data`. Raises ValueError that names the field."""
        found = structured.checked(cls, data, "")
        for n, composite in enumerate(found.composites):
            _require(composite.depth > 0, f"composites[{n}].depth", composite.depth, "1 or more")
        known = [c.name for c in found.composites]
        for n, record in enumerate(found.records):
            where = f"records[{n}]"
            _require(record.composite in known, f"{where}.composite", record.composite, known)
            is_known = not record.owner or record.owner in known
            _require(is_known, f"{where}.owner", record.owner, known)
            _require(record.status in STATUSES, f"{where}.status", record.status, STATUSES)
        for n, (_, _, owner) in enumerate(found.ops):
            _require(not owner or owner in known, f"ops[{n}][2]", owner, known)
        return found

    def __str__(self) -> str:
        lines = [f"{count:4} x {name}" for name, count in self.counts.items()] or [
            "   nothing matched"
        ]
        told: dict[tuple[str, str, str], list[str]] = {}
        for r in self.records:
            if r.cause == FALLBACK and r.status == MATCHED:
                told.setdefault((r.level, r.composite, r.level_reason), []).append(r.root)
            elif r.status in (REFUSED, UNFUSED):
                told.setdefault((r.status, r.composite, r.reason), []).append(r.root)
        for (status, composite, reason), roots in told.items():
            more = f" and {len(roots) - 1} more" if len(roots) > 1 else ""
            lines.append(f"  {status} {composite} at {roots[0]}{more}: {reason}")
        left = ", ".join(f"{count} {kind}" for kind, count in sorted(self.left.items()))
        lines.append(f"  left to TVM: {left or 'nothing'}")
        return "\n".join([*lines, *([f"  layouts: {self.layouts}"] if self.layouts else [])])


def _require(is_right: bool, where: str, found: object, wanted: object) -> None:
    if not is_right:
        raise ValueError(f"{where}: found {found!r:.60}; expected {wanted!s:.200}")


def owners(matches: Iterable[Match]) -> dict[OpCall, str]:
    """id of an op -> the composite that took it."""
    return {call: m.composite.name for m in matches for call in m.ops}


def report(mod: IRModule) -> Report:
    """What partitioning decided about this module, and why. Raises InputError for one that is not
    partitioned.
    """
    text = mod.attrs.get(REPORT) if mod.attrs is not None else None
    if text is None:
        raise InputError("mod: this module was not partitioned by partition_for_tefuse")
    return Report.from_json(str(text))
