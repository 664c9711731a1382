"""One task's search: what was tried, in this run and in earlier ones, and the candidates to try."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from ..codegen.cache.keys import digest
from ..codegen.records.record import CHOSEN, FAILED, MEASURED, WRONG, Record
from ..codegen.records.workload import Variant, with_tuned
from ..codegen.tuning_record import Tuned
from ..errors import SelfbyocError, TuningError, one_line
from ..language.decisions import deciding
from ..machine import host
from ..tvm import GENERATION, tvm
from .space import Space, Taken
from .tasks import Task

DEFAULT, OWN, METASCHEDULE = "default alone", "own schedule", "metaschedule"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel under some decisions, scheduled."""

    search: Search
    tuned: Tuned
    variant: Variant
    code: str

    @property
    def name(self) -> str:
        """Its symbol, one for each code and place."""
        return f"kernel_{digest([self.code, str(self.search.task.place)])[:24]}"


@dataclass(eq=False)
class Search:
    """What is known of one task.

    kind      which space is searched: one of DEFAULT, OWN, METASCHEDULE
    key       of the RPC servers that measure; "" for this machine
    records   by the code that they measured; None while that is under way
    refused   decisions whose schedule raised: they are recorded and are no trials
    exhausted whether there is nothing else to try
    """

    task: Task
    kind: str
    trials: int
    space: Space
    default: Variant
    key: str = ""
    records: dict[str, Record | None] = field(default_factory=dict)
    refused: int = 0
    chosen: Record | None = None
    exhausted: bool = False
    finished: bool = False
    error: str = ""

    def resume(self, records: Iterable[Record]) -> None:
        """Take over what earlier runs measured of this very task.

        A run whose schedule has changed since begins with another default: what came before it in
        the file is of no use. A default that could not be measured is measured again.
        """
        code = self.default.code
        mine = (r for r in records if (r.workload, r.place) == (self.task.key, self.task.place))
        for record in mine:
            self._check_key(record)
            if record.is_default and record.code != code and record.status != CHOSEN:
                self.records.clear()
                self.chosen = None
            elif record.status == CHOSEN:
                self.chosen = record
            elif record.code and not (record.is_default and record.status != MEASURED):
                self.records[record.code] = record
                self.chosen = None  # there was no last comparison after it
        if code not in self.records:  # the schedule has changed, or it never was measured
            self.records.clear()
            self.chosen = None
        if self.chosen is not None and self.chosen.code not in self.records:
            self.chosen = None
        for known in filter(None, self.records.values()):
            self.space.tried(known.decisions)

    def _check_key(self, record: Record) -> None:
        """Machines of two keys differ, even if their targets do not say how."""
        key = record.made_by.get("key", "")
        if key and self.key and key != self.key:
            raise TuningError(
                f"work_dir: its records of {record.place} were measured through the key {key}; use "
                f"another folder for {self.key}"
            )

    @property
    def done(self) -> int:
        """Trials of this space so far; the default is one of either space."""
        found = (r for r in self.records.values() if r is not None and not r.is_default)
        first = self.records.get(self.default.code) is not None
        return first + sum((r.trace is not None) == (self.kind == METASCHEDULE) for r in found)

    @property
    def left(self) -> int:
        """Trials that may follow."""
        if (self.error or self.exhausted) and self.default.code in self.records:
            return 0
        size = {OWN: self.space.size, DEFAULT: 1}.get(self.kind, self.trials)
        return max(0, min(self.trials, size) - self.done)

    @property
    def measured(self) -> list[Record]:
        """The candidates that were right, the best first."""
        found = [r for r in self.records.values() if r is not None and r.status == MEASURED]
        return sorted(found, key=lambda r: r.ratio)

    @property
    def parents(self) -> Sequence[Taken]:
        """The decisions of the best candidates, for the space to change."""
        default = {name: choice.taken for name, choice in self.default.choices.items()}
        best = [{**default, **Tuned(r.decisions).decisions} for r in self.measured[:6]]
        return best or [default]

    def is_default(self, candidate: Candidate) -> bool:
        """Whether it is the hand-picked one."""
        return candidate.code == self.default.code

    def first(self) -> Candidate:
        """The default, which is always a candidate."""
        return Candidate(self, Tuned(), self.default, self.default.code)

    def candidate(self, told: Tuned) -> Candidate | Record | None:
        """Schedule a proposal. None: it comes out as what was tried before; a record: it failed."""
        try:
            tuned, made = self._scheduled(told)
            code = made.code
        except SelfbyocError as err:
            self.refused += 1
            return self.record(told, "", FAILED, error=one_line(err))
        if code in self.records:
            return None
        self.records[code] = None
        return Candidate(self, tuned, made, code)

    def _scheduled(self, told: Tuned) -> tuple[Tuned, Variant]:
        """A proposal as far as it fits, and the kernel that it leads to."""
        with deciding(told.decisions, fitted=True) as asked:
            made = self.task.variant(told)
        self.space.learn(made.choices)
        if told.trace is not None or not self.default.choices:
            return told, made
        tuned = replace(told, decisions=asked.taken)
        self._check_data(tuned)
        return tuned, replace(made, source=with_tuned(made.source, self.task.target, tuned))

    def _check_data(self, tuned: Tuned) -> None:
        try:
            json.dumps(tuned.decisions)
        except TypeError as err:
            name = self.task.composite.name
            text = f"composite {name}: `choose` offers what cannot be recorded as JSON: {err}"
            raise TuningError(text) from err

    def record(self, tuned: Tuned, code: str, status: str, **found: Any) -> Record:
        """What was found, as a record; nothing is written."""
        made = Record(
            workload=self.task.key,
            composite=self.task.composite.name,
            about=str(self.task),
            place=self.task.place,
            status=status,
            decisions={} if code == self.default.code else tuned.decisions,
            trace=tuned.trace,
            code=code,
            made_by=_made_by(self),
            **found,
        )
        if status == CHOSEN:
            self.chosen = made
        elif code:
            self.records[code] = made
        return made

    def count(self, status: str) -> int:
        """Trials that ended so."""
        return sum(r is not None and r.status == status for r in self.records.values())

    @property
    def useless(self) -> tuple[int, int]:
        """How many failed, and how many were wrong."""
        return self.count(FAILED) + self.refused, self.count(WRONG)


def _made_by(search: Search) -> dict[str, str]:
    from ..version import __version__

    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    found = {"generation": GENERATION, "tvm": tvm.__version__, "cpu": host.cpu(), "date": now}
    found["selfbyoc"] = __version__
    if search.key:
        found |= {"cpu": str(search.task.target.attrs.get("mcpu") or ""), "key": search.key}
    return found
