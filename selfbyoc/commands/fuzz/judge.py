"""The verdict on one program, by a worker process that may crash or hang on it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...tuning.process import Failed, Process
from . import attempt
from .attempt import Alone, Ours
from .grow import twin
from .infer import infer
from .limits import limit_of, narrows, saturates, truncates, widens
from .program import Program
from .targets import Setting

T = TypeVar("T")

WRONG, CRASHED, HUNG, RAISED, MISSED = "wrong", "crash", "hang", "raised", "missed"
UNJUDGED = "unjudged"  # the fuzzer itself failed: a fault of its own
KINDS = (WRONG, CRASHED, HUNG, RAISED, MISSED, UNJUDGED)
_CALLS = 150  # of one process: TVM's memory grows with every build


@dataclass(frozen=True)
class Finding:
    """A program that shows a fault: of which kind, and what it says."""

    kind: str
    text: str
    program: Any  # a Program, or a Mutant of a file
    matched: str = ""
    number: int = -1  # of the program it grew as

    @property
    def key(self) -> str:
        """The same for findings that may well be one fault."""
        text = re.sub(r"0x[0-9a-f]+|[\d.]+(e[-+]?\d+)?", "#", self.text)[:100]
        where = self.program.grown[0].split()[0] if self.program.grown else ""
        by_kind = {WRONG: self.matched, CRASHED: where, HUNG: where, MISSED: self.text}
        return f"{self.kind}: {by_kind.get(self.kind, text)}"

    def is_like(self, other: Finding) -> bool:
        """Whether a smaller program shows the same fault."""
        is_told = self.kind in (RAISED, MISSED, UNJUDGED)  # others say anything about one fault
        return self.key == other.key if is_told else self.kind == other.kind


class Worker:
    """One worker process, started again after each crash, and what was counted."""

    def __init__(self, setting: Setting, seconds: float) -> None:
        self.setting, self.seconds = setting, seconds
        self.process = Process()
        self.counts: Counter[str] = Counter()
        self.matches: Counter[str] = Counter()
        self.notes: list[tuple[str, Any]] = []  # no findings, but worth a look

    def end(self) -> None:
        """End the worker process."""
        self.process.end()

    def _call(self, function: Callable[..., T], *args: object) -> T:
        if self.process.calls >= _CALLS:
            self.process.end()
        if self.process.calls == 0:
            self.process.start()
        return self.process.call(function, *args, seconds=self.seconds)


class Judge(Worker):
    """Of programs."""

    def verdict(self, program: Program) -> Finding | None:
        """What is wrong with a program and, now and then, with its twin; None if nothing is."""
        self.counts["graphs"] += 1
        found, done = self._checked(program)
        if found is not None or done is None:
            return found
        other = twin(program)
        if other is None or done.twin_counts is None:
            return None
        self.counts["twins"] += 1
        if done.twin_counts != done.counts and not _is_one_number(program):
            text = f"{other.grown[-1]}: {told(done.counts)}; {told(done.twin_counts)} after"
            return Finding(MISSED, text, program, told(done.counts))
        if program.seed % 4 == 0:
            self.counts["twins built"] += 1
            return self._checked(other)[0]
        return None

    def _checked(self, program: Program) -> tuple[Finding | None, Ours | None]:
        try:
            done = self._call(attempt.ours, program.to_json(), self.setting)
        except Failed as err:
            return self._failed(program, err), None
        if done.unwritten:
            self.counts["unwritten"] += 1
            self.notes.append((f"unwritten: {done.unwritten}", program))
            return None, None
        self.counts["builds"] += 1
        self.matches.update(done.counts)
        if done.raised:
            return self._raised(program, done), None
        return self._compared(program, done), done

    def _compared(self, program: Program, done: Ours) -> Finding | None:
        """Where NumPy disagrees, or has no meaning of an op, TVM alone is asked."""
        if done.oracle:
            self.counts[f"by {done.oracle}"] += 1
        for kind, found in done.found.items():
            if kind not in done.wrong and not done.unknown:
                continue
            other = self._alone(program, kind, found)
            if done.unknown and (other.raised or truncates(program)):
                self.counts["not compared"] += 1
            elif not other.as_numpy and self._is_limited(program):
                self.counts["known limits"] += 1
            elif not (other.undecided or other.as_ours):
                why = "" if other.as_numpy else f"; TVM alone: {other.raised or 'a third result'}"
                text = f"{kind} inputs, {done.wrong.get(kind, 'not as TVM alone')}{why}"
                return Finding(WRONG, text, program, told(done.counts))
            elif other.as_ours and not done.unknown:
                self.counts["NumPy differs from both"] += 1
                self.notes.append((f"NumPy alone: {kind}, {done.wrong[kind]}", program))
        return None

    def _is_limited(self, program: Program) -> bool:
        of_program = narrows(program) or widens(program)
        return of_program or saturates(program, self.setting.of(program))

    def _raised(self, program: Program, done: Ours) -> Finding | None:
        if done.undefined or limit_of(done.raised) is not None:
            self.counts["not compared" if done.undefined else "known limits"] += 1
            return None
        if self._alone(program, "random", None).raised:
            self.counts["refused by TVM too"] += 1
            self.notes.append((f"TVM too: {done.raised}", program))
            return None
        return Finding(RAISED, f"{done.stage}: {done.raised}", program, told(done.counts))

    def _failed(self, program: Program, err: Failed) -> Finding | None:
        """Our build ended the process, or did not end: does TVM alone, too?"""
        ended = err.late or "its process ended" in str(err)
        if not ended:
            return Finding(UNJUDGED, f"the fuzzer failed: {err}", program)
        self.counts["builds"] += 1
        if self._alone(program, "random", None).raised:
            self.counts["refused by TVM too"] += 1
            return None
        return Finding(HUNG if err.late else CRASHED, str(err), program)

    def _alone(self, program: Program, kind: str, found: list[np.ndarray] | None) -> Alone:
        self.counts["by TVM alone"] += 1
        try:
            return self._call(attempt.alone, program.to_json(), self.setting, kind, found)
        except Failed as err:
            return Alone(raised=str(err))


def _is_one_number(program: Program) -> bool:
    """Whether all that is returned is single elements: a bias is also a residual there."""
    types = infer(program)
    return all(math.prod(types[i][0][0]) == 1 for i in program.outputs)


def told(counts: Mapping[str, int]) -> str:
    """What matched, in words."""
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items())) or "nothing matched"
