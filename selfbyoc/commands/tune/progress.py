"""Tuning as it goes on: a bar with the task at hand in a terminal, else one line a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from ...tuning.progress import Progress
from .tables import ms, ratio, short


@contextmanager
def shown(console: Console) -> Iterator[Callable[[Progress], None]]:
    """What `tune` may call with its progress, while this is open."""
    if not console.is_terminal:
        yield _Lines(console, every_tenth=True)
        return
    lines = _Lines(console)
    columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("trials"), TimeElapsedColumn())
    one_line = TextColumn("{task.description}", table_column=Column(no_wrap=True, ratio=1))
    with Bar(*columns, one_line, console=console, expand=True) as bar:
        row = bar.add_task("", total=None)

        def tell(now: Progress) -> None:
            lines(now)
            text = f"{now.tasks_done}/{now.tasks} tasks{_left(now)}; {of_hand(now)}"
            text = f"{text}; {short(now.task)}"
            bar.update(row, completed=now.trials_done, total=now.trials, description=escape(text))

        yield tell


@dataclass
class _Lines:
    """One line for each task that is done; without a bar, also one for each tenth of the trials."""

    console: Console
    every_tenth: bool = False
    done: int = 0
    tenth: int = 0

    def __call__(self, now: Progress) -> None:
        tenth = 10 * now.trials_done // max(1, now.trials)
        if now.tasks_done > self.done:
            self._print(f"done: {_task(now)}, {now.task_trials} trials")
        elif self.every_tenth and tenth > self.tenth:
            count = f"{now.trials_done}/{now.trials} trials in {clock(now.elapsed)}"
            self._print(f"{count}{_left(now)}; {_task(now)}")
        self.done, self.tenth = now.tasks_done, tenth

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _left(now: Progress) -> str:
    return "" if now.remaining is None else f", {clock(now.remaining)} left"


def _task(now: Progress) -> str:
    return f"{short(now.task)}: {of_hand(now)}"


def of_hand(now: Progress) -> str:
    """`best 0.31 ms, by hand 0.4 ms (1.29x)`."""
    hand, best = now.default_seconds, now.best_seconds
    return f"best {ms(best)} ms, by hand {ms(hand)} ms ({ratio(hand, best)})"


def clock(seconds: float) -> str:
    """`1:05`, `2:01:05`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
