"""A run of tuning: candidates are built, checked, timed and written down, one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..codegen.external import packed_params
from ..codegen.records.record import CHOSEN, FAILED, MEASURED, WRONG, Record, append
from ..codegen.records.workload import arguments
from ..codegen.tuning_record import Tuned
from ..runtime.tolerance import longest_reduction
from ..tvm import target_dict
from .build import Builders
from .lane import Lane
from .measure import SEEDS, Job, Kernel, Measured, save_arguments
from .process import Failed, Pool
from .progress import Progress
from .rounding import save_allowed
from .search import Candidate, Search
from .weights import copies, positions

TIMED = 0.15  # seconds of timing, each of a candidate and of the default beside it
FIRST, LEAST = 120.0, 10.0  # seconds that the default, and a candidate, may run in all


@dataclass(eq=False)
class Run:
    """What the callbacks of MetaSchedule share.

    folder    of this run's artifacts; work_dir: of the records
    deadline  by time.monotonic(), for the search; None: as long as the trials take
    stop      what was raised in a callback: nothing more is tried, and `tune` raises it
    """

    searches: Sequence[Search]
    work_dir: Path
    folder: Path
    builders: Builders
    lanes: Pool[Lane]
    deadline: float | None = None
    progress: Callable[[Progress], None] | None = None
    stop: BaseException | None = None
    candidates: dict[str, Candidate] = field(default_factory=dict)  # by name, under way
    from_memory: bool = False  # where kernels find their weights
    begun: float = field(default_factory=time.monotonic)
    _tried: list[float] = field(default_factory=list)  # when, by time.monotonic()
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def over(self) -> bool:
        """Whether nothing more may be tried."""
        late = self.deadline is not None and time.monotonic() > self.deadline
        return late or self.stop is not None

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, if there is one."""
        return None if self.deadline is None else self.deadline - time.monotonic()

    def propose(self, search: Search, told: Tuned) -> Candidate | None:
        """Schedule a proposal. None: it comes out as what was tried before, or its schedule raises,
        which is written down.
        """
        found = search.candidate(told)
        if not isinstance(found, Record):
            return found
        append(self.work_dir, found)
        self.tell(search)
        return None

    def artifact(self, candidate: Candidate) -> Path:
        """Where its code is, or will be."""
        return self.folder / f"{candidate.name}.ll"

    def build(self, candidates: Sequence[Candidate]) -> list[str]:
        """Compile those that are not compiled yet; -> the errors, or ''."""
        missing = {c.name: c for c in candidates if not self.artifact(c).exists()}
        if not missing:
            return [""] * len(candidates)
        found = self.builders(
            [
                (c.variant.func, target_dict(c.search.task.target), self.artifact(c))
                for c in missing.values()
            ]
        )
        errors = dict(zip(missing, found, strict=True))
        return [errors.get(c.name, "") for c in candidates]

    def measure(self, candidates: Sequence[Candidate]) -> list[Record | None]:
        """Check and time candidates that are built, on as many devices as there are; each is
        written down at once. None: the time is up.
        """
        return self.lanes.map(self._measure, candidates)

    def _measure(self, lane: Lane, candidate: Candidate) -> Record | None:
        """One candidate beside the default."""
        if self.over:
            return None
        search = candidate.search
        default = search.first()
        both = [default] if search.is_default(candidate) else [default, candidate]
        try:
            found = self.compared(lane, both, TIMED)
        except Failed as err:
            return self.note(candidate, FAILED, error=str(err))
        if found.wrong:
            return self.note(candidate, WRONG, error=found.wrong)
        first, *_, last = [*found.seconds, found.seconds[-1]]
        return self.note(candidate, MEASURED, seconds=last, default_seconds=first)

    def compared(self, lane: Lane, candidates: Sequence[Candidate], timed: float) -> Measured:
        """Candidates of one task against each other, the first one being the default."""
        search = candidates[0].search
        graph = search.task.source.graph
        known = search.records.get(search.default.code)
        a_call = known.seconds if known is not None else None
        limit = FIRST if a_call is None else LEAST + 200 * a_call * len(candidates)
        outputs = tuple((tuple(int(e) for e in v.shape), v.dtype) for v in graph.outputs)
        kernels = tuple(self._kernel(c) for c in candidates)
        job = Job(kernels, outputs, longest_reduction(graph), timed)
        if self.from_memory:
            job = replace(job, weights=positions(search.task), copies=copies(search.task))
        limit += timed * len(candidates)
        found = lane.measured(job, limit)
        if found.wrong:  # or a roundoff that grew
            found = lane.measured(replace(job, allowed=self._allowed(search)), limit)
        return found

    def _allowed(self, search: Search) -> str:
        """By how much the outputs may differ; that is not known before somebody asks."""
        path = self.folder / f"{search.first().name}.allowed.npz"
        with self._lock:
            if not path.exists():
                save_allowed(path, search.task, SEEDS)
        return str(path)

    def _kernel(self, candidate: Candidate) -> Kernel:
        """What the measuring process needs; weights are packed as this candidate wants it."""
        task, source = candidate.search.task, candidate.variant.source
        first = candidate.search.first()
        is_packed = packed_params(source) or packed_params(first.variant.source)
        own = candidate if is_packed else first
        path = self.folder / f"{own.name}.npz"
        with self._lock:
            if not path.exists():
                given = [arguments(source, task.target, task.inputs(seed)) for seed in SEEDS]
                save_arguments(path, given)
        return Kernel(str(self.artifact(candidate)), str(path))

    def note(self, candidate: Candidate, status: str, **found: Any) -> Record:
        """Write down what became of a candidate."""
        search = candidate.search
        with self._lock:
            record = search.record(candidate.tuned, candidate.code, status, **found)
            append(self.work_dir, record)
            if search.is_default(candidate) and status in (FAILED, WRONG):
                search.error = f"the default schedule cannot be measured: {record.error}"
            self._tried += [time.monotonic()] * (status != CHOSEN)
            self.tell(search)
        return record

    def tell(self, search: Search) -> None:
        """Call the user's function; what it raises ends the run."""
        if self.progress is None:
            return
        try:
            self.progress(self._now(search))
        except BaseException as err:  # a user's function; TVM is on the stack, so at the end
            self.stop = self.stop or err

    def _now(self, search: Search) -> Progress:
        default = search.records.get(search.default.code)
        hand = None if default is None else default.seconds
        best = min([1.0, *(r.ratio for r in search.measured)])
        done, left = (sum(getattr(s, n) for s in self.searches) for n in ("done", "left"))
        return Progress(
            tasks=len(self.searches),
            tasks_done=sum(s.finished for s in self.searches),
            task=str(search.task),
            trials_done=done,
            trials=done + left,
            task_trials=search.done,
            best_seconds=None if hand is None else hand * best,
            default_seconds=hand,
            elapsed=time.monotonic() - self.begun,
            remaining=self._remaining(left),
        )

    def _remaining(self, left: int) -> float | None:
        """Seconds, by what trials took since the first one."""
        if len(self._tried) < 2:
            return None
        now = time.monotonic()
        by_trials = (now - self._tried[0]) / (len(self._tried) - 1) * left
        return by_trials if self.deadline is None else min(by_trials, max(0, self.deadline - now))

    def start(self) -> None:
        """Begin with what takes seconds, the start of processes, before there is work for them."""
        self.builders.start()
        self.lanes.start(lambda lane: lane.start())

    def close(self) -> None:
        """End the processes."""
        self.builders.end()
        self.lanes.end()
        for lane in self.lanes.workers:
            lane.end()
