"""What was measured, as data: it goes to JSON after each workload and comes back from there."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .contenders import CONTENDERS
from .roof import Roof

OURS, OWN_BUILD = "selfbyoc", "tvm"
DISTURBED = 0.03  # of the cores' time; a system that is left alone takes less than 1%
PEERS = tuple(c.name for c in CONTENDERS if c.is_peer)


@dataclass(frozen=True)
class Result:
    """One contender on one workload; `skipped` says why there is no time.

    `milliseconds` is the median over the faster half of the windows, `median` that over all.
    `error` is the largest difference to the truth, `relative` its share of the largest output;
    `wrong` says that rounding does not explain it.
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
    somebody else meanwhile, `key` tells a user's file from its next version, and `unchecked` says
    why results could not be checked.
    """

    name: str
    group: str
    flops: int
    bytes: int
    results: dict[str, Result]
    others: float = math.nan
    key: str = ""
    unchecked: str = ""

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
        best = self.best_peer
        if best is None or not self.ours.counts:
            return None
        return self.results[best].milliseconds / self.ours.milliseconds

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

    def share(self, row: Row, name: str | None = OURS) -> float:
        """Of the peak that a contender reached; NaN where that is not known."""
        return math.nan if name is None else row.gflops(name) / self.peak

    def with_row(self, row: Row) -> Report:
        """The row in place of an older one of this name, or behind the others."""
        rows = {r.name: r for r in self.rows} | {row.name: row}
        return replace(self, rows=tuple(rows.values()))

    def group(self, name: str) -> list[Row]:
        """The rows of one group."""
        return [row for row in self.rows if row.group == name]

    def to_json(self) -> str:
        """All as JSON; a NaN is null."""
        return json.dumps(_nullable(asdict(self)), indent=1)


def _nullable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nullable(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nullable(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def from_json(text: str) -> Report:
    """A report that `to_json` wrote."""
    try:
        data = json.loads(text)
        rows = tuple(
            Row(**_known(row) | {"results": {n: _result(r) for n, r in row["results"].items()}})
            for row in data["rows"]
        )
        return Report(
            **{**data, "rows": rows, "roofs": tuple(Roof(**roof) for roof in data["roofs"])}
        )
    except (ValueError, KeyError, TypeError) as err:
        raise InputError(f"this is no report of the benchmark: {err}") from err


def _result(data: dict[str, Any]) -> Result:
    return Result(**_known(data))


def _known(data: dict[str, Any]) -> dict[str, Any]:
    return {key: math.nan if value is None else value for key, value in data.items()}


def read_report(path: Path) -> Report:
    """A report from a file."""
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except OSError as err:
        raise InputError(f"{path} cannot be read: {err.strerror}") from err


def write_report(path: Path, report: Report) -> None:
    """A report into a file, whole or not at all: a run may be killed at any time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(report.to_json(), encoding="utf-8")
        partial.replace(path)
    except OSError as err:
        raise InputError(f"{path} cannot be written: {err.strerror}") from err


def compared(rows: Sequence[Row]) -> str:
    """Whose time the ratios of these rows are of."""
    found = {row.best_peer for row in rows if row.best_peer}
    return "TVM default / ours" if found == {OWN_BUILD} else "best peer / ours"


def geometric_mean(values: Iterable[float]) -> float:
    """NaN for nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def ratios(rows: Sequence[Row]) -> list[float]:
    """Those of the rows that have one."""
    return [row.ratio for row in rows if row.ratio is not None]


def worst(rows: Sequence[Row], count: int = 5) -> list[Row]:
    """The rows with the lowest ratios, the lowest first."""
    found = [row for row in rows if row.ratio is not None]
    return sorted(found, key=lambda row: row.ratio or 0.0)[:count]
