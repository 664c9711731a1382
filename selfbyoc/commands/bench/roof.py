"""What the machine can do at most: multiply-adds, bytes from each level of memory, and a call."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...analysis.melting.peak import FmaPeak, of_levels
from ...analysis.melting.triad import triad
from ...machine import host
from ...runtime.timing import latency
from .setting import Setting

LARGEST = 1 << 28  # bytes of an array: more is no other level of memory


@dataclass(frozen=True)
class Roof:
    """On so many threads: GFLOP/s of fp32 multiply-adds in registers, GB/s of a triad whose data
    lie in each level, and microseconds of a parallel kernel that does nothing. `gops` counts
    multiply-adds of bytes, summed exactly in int32, as `gflops` counts those of floats.
    """

    threads: int
    gflops: float
    bandwidth: dict[str, float]
    launch: float
    sizes: dict[str, int]  # bytes that each cache holds for these threads
    gops: float = math.nan


class Measurement:
    """Built first, timed later, when nobody else computes; by code for the setting's target."""

    def __init__(self, setting: Setting) -> None:
        target, threads = setting.tvm_target(), setting.threads
        self._threads = threads
        self._triads = {n: triad(total, threads, target) for n, total in _levels(threads).items()}
        self._nothing, _ = triad(0, threads, target)
        self._peak = FmaPeak(target, threads)
        self._levels = FmaPeak(target, threads, of_levels(target))

    def roof(self) -> Roof:
        """A few seconds."""
        rates = {}
        for level, (run, size) in self._triads.items():
            time = latency({"triad": run}, windows=9, budget=0.3)["triad"]
            rates[level] = 1e-6 * size / time.milliseconds
        launch = latency({"launch": self._nothing}, windows=15, budget=0.5)["launch"].milliseconds
        return Roof(
            self._threads,
            self._peak.measured().gflops,
            rates,
            1e3 * launch,
            _capacities(self._threads),
            self._levels.measured().gflops,
        )


def _capacities(threads: int) -> dict[str, int]:
    """The caches that the triads are measured in: a core's own for each thread, the last shared."""
    sizes = host.cache_bytes()
    return {f"L{n}": size * (threads if n < 3 else 1) for n, size in sizes.items() if n > 1}


def _levels(threads: int) -> dict[str, int]:
    """Level -> bytes that fit well into it, and not into the one before."""
    capacities = _capacities(threads)
    found = {name: capacity // 2 for name, capacity in capacities.items()}
    return found | {"memory": min(LARGEST, 8 * max(capacities.values(), default=LARGEST))}
