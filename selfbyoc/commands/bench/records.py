"""What was measured, as data: it goes to JSON after each workload and comes back from there."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ...common import structured
from ...common.files import read_text, write_text
from ...errors import InputError
from .contenders import CONTENDERS
from .roof import Roof

OURS, OWN_BUILD = "selfbyoc", "tvm"
STATIC = "static"  # ours too, for one length; `ours` is built once for all of them
DISTURBED = 0.03  # of the cores' time; a system that is left alone takes less than 1%
METHOD = ("windows", "turns", "seconds", "builds")  # what a report says of it
PEERS = tuple(c.name for c in CONTENDERS if c.is_peer)


@dataclass(frozen=True)
class Result:
    """One contender on one workload; `skipped` says why there is no time.

    `milliseconds` is the median over the faster half of the windows, `median` that over all.
    `error` is the largest difference to the truth, `relative` its share of the largest output;
    `wrong` says that rounding does not explain it. `file_bytes` is the size of the library, where
    that was asked for.
    """

    milliseconds: float = math.nan
    lowest: float = math.nan
    median: float = math.nan
    windows: int = 0
    error: float = math.nan
    relative: float = math.nan
    wrong: bool = False
    build_seconds: float = math.nan
    note: str = ""
    skipped: str = ""
    file_bytes: int = 0

    @property
    def steady(self) -> bool:
        """Whether most windows agree: else somebody else was computing."""
        return not self.median > 1.15 * self.milliseconds

    @property
    def counts(self) -> bool:
        """Whether there is a time, of a right result."""
        return not self.skipped and not self.wrong


@dataclass(frozen=True)
class Row:
    """One workload and all who took part; `others` is the share of the cores' time that went to
    somebody else meanwhile, `key` tells a user's file from its next version, `unchecked` says
    why results could not be checked, and `length` is the size of a model that has one open.
    `floats` names the workload that a model of levels was made of.
    """

    name: str
    group: str
    flops: int
    bytes: int
    results: dict[str, Result]
    others: float = math.nan
    key: str = ""
    unchecked: str = ""
    length: int = 0
    floats: str = ""

    @property
    def built(self) -> bool:
        """Whether anybody could build it and run it."""
        return any(not result.skipped for result in self.results.values())

    @property
    def disturbed(self) -> bool:
        """Whether somebody else computed: measure it again."""
        return self.others > DISTURBED

    @property
    def ours(self) -> Result:
        """Our result; one that says so where we did not take part."""
        return self.results.get(OURS, Result(skipped="not asked"))

    @property
    def best_peer(self) -> str | None:
        """The fastest of the peers whose result is right; TVM's own build where none took part."""
        there = {n: r for n, r in self.results.items() if not r.skipped}
        asked = PEERS if there.keys() & set(PEERS) else (OWN_BUILD,)
        found = {n: r for n, r in there.items() if n in asked and r.counts}
        return min(found, key=lambda name: found[name].milliseconds) if found else None

    @property
    def ratio(self) -> float | None:
        """The best peer's time to ours; above 1 we are faster."""
        return self._over(self.best_peer)

    @property
    def static_ratio(self) -> float | None:
        """The time of our build for this length alone to ours."""
        return self._over(STATIC)

    def _over(self, name: str | None) -> float | None:
        """A contender's time to ours; None where one of them has none."""
        other = self.results.get(name or "")
        if other is None or not (other.counts and self.ours.counts):
            return None
        return other.milliseconds / self.ours.milliseconds

    def gflops(self, name: str = OURS) -> float:
        """Operations of the direct algorithm in a contender's time; NaN where there is none."""
        result = self.results.get(name)
        if result is None or not result.counts or not self.flops:
            return math.nan
        return 1e-6 * self.flops / result.milliseconds


@dataclass(frozen=True)
class Report:
    """All rows, and where and how they were measured. The last roof has all threads."""

    facts: dict[str, str]
    versions: dict[str, str]
    generation: str
    threads: int
    method: dict[str, float]
    roofs: tuple[Roof, ...]
    rows: tuple[Row, ...] = field(default=())
    target: str = "unknown"  # what ours and the roofs were built for

    @property
    def peak(self) -> float:
        """GFLOP/s of multiply-adds on all threads."""
        return self.roofs[-1].gflops if self.roofs else math.nan

    def peak_of(self, row: Row) -> float:
        """Of multiply-adds of what the row multiplies: floats, or levels."""
        return self.roofs[-1].gops if self.roofs and row.floats else self.peak

    def share(self, row: Row, name: str | None = OURS) -> float:
        """Of the peak that a contender reached; NaN where that is not known."""
        return math.nan if name is None else row.gflops(name) / self.peak_of(row)

    def over_floats(self, row: Row) -> float | None:
        """Our time for the model of floats to ours for this one of levels; None where one lacks."""
        floats = next((r.ours for r in self.rows if r.name == row.floats), None)
        if floats is None or not (floats.counts and row.ours.counts):
            return None
        return floats.milliseconds / row.ours.milliseconds

    def with_row(self, row: Row) -> Report:
        """The row in place of an older one of this name, or after the others."""
        rows = {r.name: r for r in self.rows} | {row.name: row}
        return replace(self, rows=tuple(rows.values()))

    def group(self, name: str) -> list[Row]:
        """The rows of one group."""
        return [row for row in self.rows if row.group == name]

    def to_json(self) -> str:
        """All as JSON; a NaN is null."""
        return json.dumps(structured.nullable(asdict(self)), indent=1)


def from_json(text: str) -> Report:
    """A report that `to_json` wrote. Raises InputError that names the field."""
    try:
        found = structured.read(Report, text)
        _check(found)
    except ValueError as err:
        raise InputError(f"this is no report of the benchmark: {err}") from err
    return found


def _check(found: Report) -> None:
    """What tables and plots divide by, and take the logarithm of."""
    _above("threads", found.threads)
    for name in METHOD:
        _above(f"method.{name}", found.method.get(name, math.nan))
    if not found.roofs:
        raise ValueError("roofs: found none; expected that of all threads at least")
    for n, roof in enumerate(found.roofs):
        where, rates = f"roofs[{n}]", roof.bandwidth
        for name, value in {"gflops": roof.gflops, "launch": roof.launch, **rates}.items():
            _above(f"{where}.{name}", value)
        if not math.isnan(roof.gops):  # older reports have none
            _above(f"{where}.gops", roof.gops)
        for name in {*roof.sizes, "memory"} - {*rates}:
            raise ValueError(f"{where}.bandwidth.{name} is missing; expected a number")
    for n, row in enumerate(found.rows):
        _check_row(f"rows[{n}]", row)


def _check_row(where: str, row: Row) -> None:
    for name, count in {"flops": row.flops, "bytes": row.bytes}.items():
        if count < 0:
            raise ValueError(f"{where}.{name}: found {count}; expected 0 or more")
    for name, result in row.results.items():
        if not result.skipped:
            _above(f"{where}.results.{name}.milliseconds", result.milliseconds)


def _above(where: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{where}: found {value}; expected a number above 0")


def read_report(path: Path) -> Report:
    """A report from a file. Raises InputError that names the file, and the field."""
    try:
        return from_json(read_text(path))
    except InputError as err:
        text = str(err)
        raise err if str(path) in text else InputError(f"{path}: {text}") from err


def write_report(path: Path, report: Report) -> None:
    """A report into a file, whole or not at all: a run may be killed at any time."""
    write_text(path, report.to_json())
