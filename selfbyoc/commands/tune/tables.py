"""Tables about tuning: the tasks of a model, what tuning found, and the records of a folder."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from ...codegen.records.record import Record
from ...codegen.tuning_record import Tuned
from ...errors import DecisionError, SelfbyocError, one_line
from ...tuning.progress import Outcome
from ...tuning.tasks import Task
from ..console import PlainTable

WIDTH = 140  # of the tables in a pipe or a file
NO_CHOICES = "no choices"
_TENSOR = re.compile(r"(\w+)\[([\d, ]*)\]")


def task_table(tasks: Sequence[Task]) -> Table:
    """What would be tuned: calls in one run of the model, ops, and what is open."""
    table = PlainTable(show_edge=False)
    table.add_column("task", overflow="fold")
    table.add_column("weight", justify="right")
    table.add_column("ops", justify="right")
    table.add_column("to choose from", overflow="fold")
    for task in tasks:
        table.add_row(short(str(task)), str(task.weight), str(len(task.ops)), Text(space_of(task)))
    return table


def short(about: str) -> Text:
    """`dense: float32[5, 33], int8[7] -> ...` as `dense: 5x33, int8 7 -> ...`."""

    def tensor(found: re.Match[str]) -> str:
        dtype, shape = found[1], found[2].replace(", ", "x")
        return shape if dtype == "float32" and shape else f"{dtype} {shape}".rstrip()

    return Text(_TENSOR.sub(tensor, about))


def space_of(task: Task) -> str:
    """What is searched by default: the composite's choices, or MetaSchedule's space."""
    if not task.has_space:
        return "MetaSchedule's space"
    try:
        choices = task.variant().choices
    except SelfbyocError as err:
        return one_line(err)
    if not choices:
        return NO_CHOICES
    count = math.prod(len(choice.candidates) for choice in choices.values())
    return f"{', '.join(choices)}: {count:,} ways"


def changed(task: Task, record: Record | None) -> str:
    """The decisions of a record that are not the default ones."""
    if record is None or record.is_default:
        return ""
    if record.trace is not None:
        return "a schedule of MetaSchedule's"
    try:
        choices = task.variant(Tuned(record.decisions, record.trace)).choices
    except DecisionError as err:
        return one_line(err)
    other = {n: c for n, c in choices.items() if c.taken != c.default}
    return ", ".join(f"{n} {_text(c.default)} -> {_text(c.taken)}" for n, c in other.items())


def _text(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def outcome_table(outcomes: Iterable[Outcome]) -> Table:
    """What tuning found of each task, with what it decided otherwise than the hand schedule."""
    table = PlainTable(show_edge=False)
    table.add_column("task", overflow="fold")
    for name in ("weight", "trials", "hand ms", "best ms", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("changed", overflow="fold")
    for outcome in outcomes:
        task = outcome.task
        table.add_row(
            short(str(task)), str(task.weight), trials(outcome), ms(outcome.default_seconds),
            ms(outcome.best_seconds), ratio(outcome.default_seconds, outcome.best_seconds),
            Text(outcome.error or changed(task, outcome.record)),
        )  # fmt: skip
    return table


def trials(outcome: Outcome) -> str:
    """`64`, or `64 (3 failed, 1 wrong)`."""
    bad = [f"{n} {name}" for name in ("failed", "wrong") if (n := getattr(outcome, name))]
    return str(outcome.trials) + (f" ({', '.join(bad)})" if bad else "")


def gain_line(outcomes: Sequence[Outcome]) -> str:
    """What all kernels of the model take, each as often as the model calls it."""
    known = [o for o in outcomes if o.default_seconds and o.best_seconds]
    if not known:
        return "nothing was measured"
    hand = sum(o.task.weight * (o.default_seconds or 0.0) for o in known)
    best = sum(o.task.weight * (o.best_seconds or 0.0) for o in known)
    calls = sum(o.task.weight for o in known)
    return (
        f"{calls} kernels of the model: {ms(hand)} ms by hand, {ms(best)} ms tuned "
        f"({ratio(hand, best)})"
    )


def ms(seconds: float | None) -> str:
    """Milliseconds with four digits."""
    return "-" if seconds is None else f"{1e3 * seconds:.4g}"


def ratio(hand: float | None, best: float | None) -> str:
    """How many times as fast as the hand schedule."""
    return f"{hand / best:.2f}x" if hand and best else "-"
