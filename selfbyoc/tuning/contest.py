"""The end of a task: the best candidates against the default once more, side by side."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from ..codegen.tuned import Tuned
from ..errors import SelfbyocError
from .lane import Lane
from .measure import Measured
from .process import Failed
from .records import CHOSEN
from .run import Run
from .search import Candidate, Search

TIMED = 0.3  # seconds of each in a round
ROUNDS = 3  # in a process each: where memory lies in one changes a kernel's time by up to 5%
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
    """The fastest in a comparison of all, where it beats the default each time and clearly."""
    default = search.first()
    known = search.records[search.default.code]
    assert known is not None
    rounds = list(_rounds(run, [default, *finalists])) if finalists else []
    if not rounds:
        seconds = known.seconds or 0.0
        run.note(default, CHOSEN, seconds=seconds, default_seconds=seconds)
        return
    hand, *found = (statistics.median(times) for times in zip(*rounds, strict=True))
    best = min(range(len(finalists)), key=found.__getitem__)
    always = all(times[best + 1] < times[0] for times in rounds)
    is_better = always and found[best] < GAIN * hand
    winner, seconds = (finalists[best], found[best]) if is_better else (default, hand)
    run.note(winner, CHOSEN, seconds=seconds, default_seconds=hand)


def _rounds(run: Run, candidates: list[Candidate]) -> Iterator[tuple[float, ...]]:
    """Seconds of all, each time in a new process; no more than it takes to see that none wins."""
    for _ in range(ROUNDS):
        try:
            [found] = run.lanes.map(lambda lane, all_: _anew(run, lane, all_), [candidates])
        except Failed:  # each of them ran before: the machine or the device is to blame
            return
        if not found.seconds:
            return
        yield found.seconds
        if min(found.seconds[1:]) > GAIN * found.seconds[0]:
            return


def _anew(run: Run, lane: Lane, candidates: list[Candidate]) -> Measured:
    lane.end()
    return run.compared(lane, candidates, TIMED)
