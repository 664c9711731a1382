"""The verdict on one mutant, by a worker process that may crash or hang on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....tuning.process import Failed
from ..attempt import Alone
from ..judge import CRASHED, HUNG, RAISED, UNJUDGED, WRONG, Finding, Worker, told
from . import attempt
from .attempt import Tried
from .draw import TRIES, Draw, drawn
from .mutant import Mutant


class MutantJudge(Worker):
    """Of mutants: ONNX Runtime says what is right."""

    def verdict(self, case: Draw | Mutant) -> Finding | None:
        """What is wrong with a mutant, or with the first of a draw that is valid; None if nothing
        is.
        """
        if isinstance(case, Mutant):
            return self._judged(case)[1]
        for number in range(TRIES):
            found = drawn(case, number)
            self.counts["not valid"] += found.refused
            if found.mutant is None:
                continue
            is_valid, finding = self._judged(found.mutant)
            if is_valid:
                return finding
            self.counts["not valid"] += 1
        return None

    def _judged(self, mutant: Mutant) -> tuple[bool, Finding | None]:
        """Whether it is valid, and what is wrong with it."""
        try:
            done: Tried = self._call(attempt.ours, mutant, self.setting)
        except Failed as err:
            if not self._runs(mutant):
                return False, None
            self.counts["graphs"] += 1
            return True, self._failed(mutant, err)
        if done.invalid:
            return False, None
        self.counts["graphs"] += 1
        self.matches.update(done.counts)
        if done.refused:
            self.counts["refused"] += 1
            self.notes.append((f"refused: {done.refused}", mutant))
            return True, None
        self.counts["builds"] += 1
        return True, self._raised(mutant, done) if done.raised else self._compared(mutant, done)

    def _compared(self, mutant: Mutant, done: Tried) -> Finding | None:
        self.counts["not compared"] += done.undefined
        for kind, found in done.found.items():
            other = self._alone(mutant, kind, found)
            if other.as_ours:
                self.counts["TVM alone is as wrong"] += 1
                self.notes.append((f"TVM alone, too: {kind}, {done.wrong[kind]}", mutant))
                continue
            why = f"TVM alone: {other.raised}" if other.raised else "not as TVM alone"
            text = f"{kind} inputs, {done.wrong[kind]}; {why}"
            return Finding(WRONG, text, mutant, told(done.counts))
        return None

    def _raised(self, mutant: Mutant, done: Tried) -> Finding | None:
        # What is imported is typed, or an error that is: another one is ours, whatever TVM says.
        if done.stage != "import" and self._alone(mutant, "random", None).raised:
            self.counts["refused by TVM too"] += 1
            self.notes.append((f"TVM too: {done.raised}", mutant))
            return None
        return Finding(RAISED, f"{done.stage}: {done.raised}", mutant, told(done.counts))

    def _failed(self, mutant: Mutant, err: Failed) -> Finding | None:
        """Our build ended the process, or did not end: does TVM alone, too?"""
        if not (err.late or err.ended):
            return Finding(UNJUDGED, f"the fuzzer failed: {err}", mutant)
        self.counts["builds"] += 1
        if self._alone(mutant, "random", None).raised:
            self.counts["refused by TVM too"] += 1
            self.notes.append((f"TVM too: {err}", mutant))
            return None
        return Finding(HUNG if err.late else CRASHED, str(err), mutant)

    def _runs(self, mutant: Mutant) -> bool:
        try:
            return bool(self._call(attempt.runs, mutant))
        except Failed:  # ONNX Runtime crashes or hangs on it
            return False

    def _alone(self, mutant: Mutant, kind: str, found: Sequence[np.ndarray] | None) -> Alone:
        self.counts["by TVM alone"] += 1
        try:
            answer: Alone = self._call(attempt.alone, mutant, self.setting, kind, found)
        except Failed as err:
            return Alone(raised=str(err))
        return answer
