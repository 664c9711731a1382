"""Latency on a machine that others use too: windows in turns, of which the quiet ones count."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

WINDOW = 0.02  # seconds; a scheduler's time slice is a few milliseconds


@dataclass(frozen=True)
class Latency:
    """Milliseconds a call: the median of the windows."""

    milliseconds: float
    windows: int
    quiet: bool


def latency(
    runs: Mapping[str, Callable[[], object]], windows: int = 31, budget: float = 8.0
) -> dict[str, Latency]:
    """Time callables against each other; a slow one gets fewer windows: `budget` seconds each.

    A window counts if the process was pushed off a core at most once in 20 ms: a busy neighbour
    doubles the time of a kernel that waits for its slowest thread. Where no window was quiet, all
    count, and the result says so.
    """
    once = {name: _once(run) for name, run in runs.items()}
    samples: dict[str, list[tuple[float, bool]]] = {name: [] for name in runs}
    spent = dict.fromkeys(runs, 0.0)
    for _ in range(windows):
        for name, run in runs.items():
            if spent[name] < budget:
                if once[name] < WINDOW:
                    run()  # not timed: the threads of the one before still spin
                seconds, calls, disturbed = _window(run)
                spent[name] += seconds
                samples[name].append((seconds / calls, disturbed <= max(1, seconds / WINDOW)))
    return {name: _median(found) for name, found in samples.items()}


def _once(run: Callable[[], object]) -> float:
    """Seconds of the second call: the first one loads code and starts threads."""
    run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _window(run: Callable[[], object]) -> tuple[float, int, int]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < WINDOW:
        run()
        calls += 1
    seconds = time.perf_counter() - start
    return seconds, calls, resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before


def _median(samples: list[tuple[float, bool]]) -> Latency:
    quiet = [seconds for seconds, is_quiet in samples if is_quiet]
    counted = quiet or [seconds for seconds, _ in samples]
    return Latency(1e3 * statistics.median(counted), len(counted), bool(quiet))
