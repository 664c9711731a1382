"""What a run of tuning reports while it goes on, and what it found."""

from __future__ import annotations

from dataclasses import dataclass

from ..codegen.records.record import Record
from .tasks import Task


@dataclass(frozen=True)
class Progress:
    """After each candidate: where the run is. Times in seconds; None: not known yet.

    tasks_done       tasks whose last comparison is over
    trials_done      candidates of all tasks that were tried, those of earlier runs included
    task_trials      of this task
    best_seconds     of a call of this task's fastest candidate so far
    default_seconds  of its hand schedule
    remaining        estimated from the time that the trials of this run took
    """

    tasks: int
    tasks_done: int
    task: str
    trials_done: int
    trials: int
    task_trials: int
    best_seconds: float | None
    default_seconds: float | None
    elapsed: float
    remaining: float | None


@dataclass(frozen=True)
class Outcome:
    """What tuning found for one task.

    trials           candidates that were tried, those of earlier runs included
    failed           of these: could not be built, crashed or hung
    wrong            of these: computed something else
    default_seconds  of a call of the hand schedule, in the last comparison
    best_seconds     of what was chosen, in the same one
    record           what a build takes within `apply_records`; None: nothing could be measured
    error            why that is; or why no candidate can be called faster
    """

    task: Task
    trials: int
    failed: int
    wrong: int
    default_seconds: float | None
    best_seconds: float | None
    record: Record | None
    error: str = ""

    @property
    def speedup(self) -> float:
        """How many times as fast as the hand schedule; 1 where that stays."""
        if not self.default_seconds or not self.best_seconds:
            return 1.0
        return self.default_seconds / self.best_seconds


@dataclass(frozen=True)
class Tuning:
    """The outcome of each task, in the order of the tasks, and how many seconds the run took.
    `print` it for a table.
    """

    outcomes: tuple[Outcome, ...]
    seconds: float

    def __str__(self) -> str:
        lines = [f"{'hand ms':>9} {'best ms':>9} {'faster':>7} {'trials':>6}  task"]
        lines += [_line(outcome) for outcome in self.outcomes]
        return "\n".join(lines)


def _line(outcome: Outcome) -> str:
    times = (outcome.default_seconds, outcome.best_seconds)
    hand, best = ("-" if t is None else f"{1e3 * t:.4g}" for t in times)
    lost = outcome.failed + outcome.wrong
    note = f" ({lost} of no use)" if lost else ""
    text = f"{hand:>9} {best:>9} {outcome.speedup:>6.2f}x {outcome.trials:>6}  {outcome.task}{note}"
    return f"{text}: {outcome.error}" if outcome.error else text
