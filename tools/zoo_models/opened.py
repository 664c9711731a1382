"""One model with an open size tried, in a process of its own: exported and built once, compared at
several sizes, timed beside a build for one of them alone.
"""

from __future__ import annotations

import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import selfbyoc
from selfbyoc.errors import FallbackWarning
from selfbyoc.partition.report import FALLBACK

from .model import Made, Model
from .open_truth import Judge, judge_of
from .record import RIGHT, WRONG
from .sizes import BATCH, SEQUENCE, SIZES, inputs_at, most_of, open_program, open_size
from .trial import Trial, counted, exported, first_line

TIMED = {BATCH: 2, SEQUENCE: 33}  # the size whose own build is timed, too
WINDOWS, LEAST = 7, 0.2  # of each of both; seconds of one


class Opened(Trial):
    """As a trial of fixed sizes, at each of several."""

    def __init__(self, model: Model, size: str, path: Path, alone: bool, is_timed: bool) -> None:
        super().__init__(model, size, path, alone)
        self._is_timed = is_timed

    def _tried(self) -> str:
        with self._at("make"):
            made = self._model.made(self._size)
            which = open_size(made)
            most = most_of(made, which)
        sizes = [size for size in SIZES if size <= most]
        facts = {"open": which, "most": str(most), "sizes": ", ".join(map(str, sizes))}
        self._found["facts"] = facts
        with self._at("export"):
            program = open_program(made, which, most)
        with self._at("import"):
            mod = selfbyoc.from_torch(program)
        del program
        with self._at("truth"):
            judge = judge_of(made, which, sizes)
        if judge.left_out:
            facts["left out"] = f"{judge.left_out} pictures"
        library = self._built(mod)
        del mod
        self._found |= counted(library.report) | {"fallbacks": _without_kernel(library.report)}
        for size in sizes:
            self._compare(library, inputs_at(made, which, size), size, judge)
        if self._found["reason"]:
            return WRONG
        if self._is_timed:
            self._write({**self._found, "outcome": RIGHT})  # it is, should the rest be too much
            self._found |= _timed(library, made, which)
        return RIGHT

    def _built(self, mod: Any) -> Any:
        """In one go, as users do: a composite that has no kernel of all sizes is left out then."""
        composites: Sequence[Any] | None = [] if self._alone else None
        with self._at("build"), warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            return selfbyoc.build(mod, composites=composites, cache=False)

    def _compare(self, library: Any, inputs: tuple[Any, ...], size: int, judge: Judge) -> None:
        """Keeps the worst of all sizes."""
        facts = self._found["facts"]
        facts["at"] = str(size)
        with self._at("run"):
            found = library(*(given.numpy() for given in inputs))
        with self._at("compare"):
            told = judge.judged(size, found)
        del facts["at"]
        if told["reason"]:
            told["reason"] = f"{facts['open']} {size}: {told['reason']}"
        if _badness(told) >= _badness(self._found):
            self._found |= told


def _without_kernel(report: Any) -> list[str]:
    """Composites that took the default schedule, or were left out, and why."""
    found = (r for r in report.records if r.cause == FALLBACK)
    return sorted({f"{r.composite}: {r.level_reason or r.reason}" for r in found})


def _badness(told: Mapping[str, Any]) -> tuple[bool, float]:
    """Wrong before right, then what is nearest to its bound."""
    error = told.get("error", -1.0)
    return bool(told.get("reason")), error / (told.get("allowed") or 1e-30)


def _timed(library: Any, made: Made, which: str) -> dict[str, Any]:
    """Milliseconds of a call: of the open build, and of one for this size alone."""
    inputs = inputs_at(made, which, TIMED[which])
    arrays = [given.numpy() for given in inputs]
    try:
        program = exported(Made(made.module.float(), inputs))
        static = selfbyoc.build(selfbyoc.from_torch(program), cache=False)
        calls = {"open": library.prepared(*arrays), "static": static.prepared(*arrays)}
        return {"times": {name: round(1e3 * s, 4) for name, s in _in_turns(calls).items()}}
    except Exception as err:  # of a model that is right: this is the report
        return {"skipped": {"static": first_line(err)}}


def _in_turns(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of a call, the median of windows that take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _, (name, call) in itertools.product(range(WINDOWS), calls.items()):
        found[name].append(_window(call))
    return {name: statistics.median(times) for name, times in found.items()}


def _window(call: Callable[[], object]) -> float:
    began, count = time.perf_counter(), 0
    while (took := time.perf_counter() - began) < LEAST or not count:
        call()
        count += 1
    return took / count
