"""The end of a task: the best candidates against the default once more, side by side."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from ..codegen.records.record import CHOSEN
from ..codegen.tuning_record import Tuned
from ..errors import SelfbyocError
from .lane import Lane
from .measure import Measured
from .pairs import Ratio, ratio
from .process import Failed
from .run import Run
from .search import Candidate, Search

Turns = tuple[tuple[float, ...], ...]  # of each kernel, the default first
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
    hand = statistics.median(joined(rounds, 0))
    best, found, why = verdict(rounds)
    if best is None:
        run.note(default, CHOSEN, seconds=hand, default_seconds=hand, error=why)
        return
    seconds = hand * found.median
    run.note(finalists[best - 1], CHOSEN, seconds=seconds, default_seconds=hand)


def joined(rounds: Sequence[Turns], n: int) -> list[float]:
    """One kernel's times of all rounds, turn by turn."""
    return [seconds for turns in rounds for seconds in turns[n]]


def ratios(rounds: Sequence[Turns]) -> list[Ratio]:
    """Of each candidate to the default, over all rounds."""
    found = []
    for n in range(1, len(rounds[0])):
        default = [s for turns in rounds for s in turns[0][: len(turns[n])]]
        found.append(ratio(joined(rounds, n), default))
    return found


def verdict(rounds: Sequence[Turns]) -> tuple[int | None, Ratio, str]:
    """Which candidate wins, its ratio, and '' or why nobody can tell.

    It is faster for sure (the interval of its ratio ends below 1), by what is worth another code,
    and in each round. Where none is, yet one may be, the machine was too busy to tell.
    """
    found = ratios(rounds)
    sure = [n for n, r in enumerate(found) if r.high < 1 and r.median < GAIN]
    sure = [n for n in sure if all(_one(turns, n + 1) < 1 for turns in rounds)]
    if sure:
        best = min(sure, key=lambda n: found[n].median)
        return best + 1, found[best], ""
    near = min(found, key=lambda r: r.median)
    may_win = [r for r in found if r.low < GAIN]
    text = f"cannot tell: the best candidate took {near}, of the default's time"
    return None, near, text if may_win else ""


def _one(turns: Turns, n: int) -> float:
    return ratio(turns[n], turns[0][: len(turns[n])]).median


def _rounds(run: Run, candidates: list[Candidate]) -> Iterator[Turns]:
    """Turns of all, each time in a new process; no more than it takes to see that none wins."""
    before: list[Turns] = []
    for _ in range(ROUNDS):
        try:
            [found] = run.lanes.map(lambda lane, all_: _anew(run, lane, all_), [candidates])
        except Failed:  # each of them ran before: the machine or the device is to blame
            return
        if not found.turns:
            return
        yield found.turns
        before.append(found.turns)
        if all(r.low > GAIN for r in ratios(before)):
            return


def _anew(run: Run, lane: Lane, candidates: list[Candidate]) -> Measured:
    lane.end()
    return run.compared(lane, candidates, TIMED)
