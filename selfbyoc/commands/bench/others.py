"""How much of the cores' time went to others while a workload was timed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_BUSY = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, and what the hypervisor took


def busy_ticks(cores: Iterable[int], proc: Path = _PROC) -> int | None:
    """Ticks that these cores have been busy with anything; None where Linux does not tell."""
    wanted = {f"cpu{core}" for core in cores}
    try:
        lines = (proc / "stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    counts = [line.split()[1:] for line in lines if line.split()[:1] and line.split()[0] in wanted]
    return sum(int(fields[n]) for fields in counts for n in _BUSY)


def own_ticks(pids: Iterable[int], proc: Path = _PROC) -> int:
    """Ticks that these processes have run; those that ended count nothing."""
    total = 0
    for pid in pids:
        try:
            text = (proc / str(pid) / "stat").read_text(encoding="utf-8")
        except OSError:
            continue
        total += sum(map(int, text.rpartition(")")[2].split()[11:13]))
    return total


class Watch:
    """From its making on: the share of the process's cores that others had."""

    def __init__(self, pids: Iterable[int], proc: Path = _PROC) -> None:
        self._proc, self._pids = proc, [os.getpid(), *pids]
        self._cores = os.sched_getaffinity(0)
        self._start = self._read()

    def _read(self) -> tuple[int | None, int, float]:
        own = own_ticks(self._pids, self._proc)
        return busy_ticks(self._cores, self._proc), own, os.times().elapsed

    def share(self) -> float:
        """0 for a machine of our own; NaN where that is not known."""
        (busy, own, start), (busy_now, own_now, now) = self._start, self._read()
        passed = (now - start) * os.sysconf("SC_CLK_TCK") * len(self._cores)
        if busy is None or busy_now is None or not passed:
            return math.nan
        return max(0.0, (busy_now - busy - (own_now - own)) / passed)
