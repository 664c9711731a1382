"""The end of a task: the best candidates against the default once more, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from ..codegen.tuned import Tuned
from ..errors import SelfbyocError
from .process import Failed
from .records import CHOSEN
from .run import Run
from .search import Candidate, Search

TIMED = 0.6  # seconds of each
FINALISTS = 3
GAIN = 0.99  # of the default's time, at most, to win: less is chance, and another code is a risk


def finish(run: Run, search: Search) -> None:
    """Decide what a build is to take, and write it down; the default, if nothing beats it."""
    if search.finished or not search.measured or run.stop is not None:
        return
    if search.chosen is None:
        finalists = list(_finalists(run, search)) if run.build([search.first()]) == [""] else []
        _choose(run, search, finalists)
    search.finished = True
    run.tell(search)


def _finalists(run: Run, search: Search) -> Iterator[Candidate]:
    """The best candidates that today's code still makes, compiled."""
    count = 0
    for record in search.measured:
        if count == FINALISTS or record.ratio > 1:
            return
        if record.code == search.default.code:
            continue
        tuned = Tuned(record.decisions, record.trace)
        try:
            made = search.task.variant(tuned)
        except SelfbyocError:  # a schedule changed in what this decision leads to
            continue
        candidate = Candidate(search, tuned, made, made.code)
        if made.code == record.code and run.build([candidate]) == [""]:
            count += 1
            yield candidate


def _choose(run: Run, search: Search, finalists: list[Candidate]) -> None:
    """The fastest, where it is clearly faster than the default in a comparison of all."""
    default = search.first()
    known = search.records[search.default.code]
    assert known is not None
    seconds = [known.seconds or 0.0]
    if finalists:
        try:
            [found] = run.lanes.map(
                lambda lane, all_: run.compared(lane, all_, TIMED), [[default, *finalists]]
            )
            seconds = list(found.seconds) or seconds
        except Failed:  # each of them ran before: the machine or the device is to blame
            seconds = seconds[:1]
    times = dict(zip([default, *finalists], seconds, strict=False))
    best = min(times, key=lambda c: times[c])
    winner = best if times[best] < GAIN * times[default] else default
    run.note(winner, CHOSEN, seconds=times[winner], default_seconds=times[default])
