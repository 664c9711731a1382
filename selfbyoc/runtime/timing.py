"""Latency on a machine that others use too: windows in turns, of which the quiet ones count."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

WINDOW = 0.02  # seconds; a scheduler's time slice is a few milliseconds


@dataclass(frozen=True)
class Latency:
    """Milliseconds a call: the median of the windows, and the lowest of them."""

    milliseconds: float
    windows: int
    quiet: bool
    lowest: float


@dataclass(frozen=True)
class Window:
    """Some calls one after the other."""

    seconds: float
    calls: int
    disturbed: int  # how often the process was pushed off a core

    @property
    def quiet(self) -> bool:
        """A busy neighbour doubles the time of a kernel that waits for its slowest thread."""
        return self.disturbed <= max(1, self.seconds / WINDOW)


def latency(
    runs: Mapping[str, Callable[[], object]], windows: int = 31, budget: float = 8.0
) -> dict[str, Latency]:
    """Time callables against each other; a slow one gets fewer windows: `budget` seconds each.

    A window counts if the process was pushed off a core at most once in 20 ms. Where no window was
    quiet, all count, and the result says so.
    """
    once = {name: _once(run) for name, run in runs.items()}
    samples: dict[str, list[Window]] = {name: [] for name in runs}
    spent = dict.fromkeys(runs, 0.0)
    for _ in range(windows):
        for name, run in runs.items():
            if spent[name] < budget:
                if once[name] < WINDOW:
                    run()  # not timed: the threads of the one before still spin
                samples[name].append(window(run))
                spent[name] += samples[name][-1].seconds
    return {name: summary(found) for name, found in samples.items()}


def _once(run: Callable[[], object]) -> float:
    """Seconds of the second call: the first one loads code and starts threads."""
    run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def window(
    run: Callable[[], object], length: float = WINDOW, warm: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Window:  # fmt: skip
    """Call until `length` seconds are over, at least once; before that, `warm` seconds untimed."""
    start = clock()
    while clock() - start < warm:
        run()
    before, start, calls = _interruptions(), clock(), 0
    while calls == 0 or clock() - start < length:
        run()
        calls += 1
    seconds = clock() - start
    return Window(seconds, calls, _interruptions() - before)


def _interruptions() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def summary(windows: Sequence[Window]) -> Latency:
    """The median over the quiet windows, or over all where none was quiet."""
    quiet = [w for w in windows if w.quiet]
    counted = [1e3 * w.seconds / w.calls for w in quiet or windows]
    return Latency(statistics.median(counted), len(counted), bool(quiet), min(counted))
