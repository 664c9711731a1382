"""What a kernel takes on so many cores, from what it takes on one: the model and its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from selfbyoc.machine import MOST_FEEDING_CORES

from .counting import Counted

# Microseconds that each further core adds to a launch: its line of cache there and back, by which
# TVM's pool hands out the work and hears that it is done (performance-notes.md, Many cores).
HAND_OVER = 0.06


@dataclass(frozen=True)
class Limits:
    """Of a machine, as measured on one and two of its cores: microseconds of a launch, bytes a
    microsecond from memory to one core, operations a microsecond of one core.
    """

    launch_of_one: float
    launch_of_two: float
    bandwidth: float
    peak: float

    def launch(self, cores: int) -> float:
        """Of a parallel region."""
        return self.launch_of_one if cores == 1 else self.launch_of_two + HAND_OVER * (cores - 2)

    def from_memory(self, cores: int) -> float:
        """Bytes a microsecond to so many cores."""
        return self.bandwidth * min(cores, MOST_FEEDING_CORES)


@dataclass(frozen=True)
class Parts:
    """Microseconds of a kernel: its work evenly spread, the wait for the core with most tasks, the
    wait for weights from memory, launches.
    """

    even: float
    imbalance: float
    memory: float
    launch: float

    @property
    def all(self) -> float:
        """Of the kernel."""
        return self.even + self.imbalance + self.memory + self.launch


def parts(kernel: Counted, alone: float, cores: int, limits: Limits) -> Parts:
    """A kernel that takes so long on one core, as it is scheduled, on several."""
    launches = len(kernel.regions)
    work = max(0.0, alone - launches * limits.launch(1))
    serial = max(0.0, 1 - sum(region.share for region in kernel.regions))
    busiest = serial + sum(r.share * -(-r.tasks // cores) / r.tasks for r in kernel.regions)
    even, computed = work / cores, work * busiest
    memory = max(0.0, kernel.weights / limits.from_memory(cores) - computed)
    return Parts(even, computed - even, memory, launches * limits.launch(cores))


def roofline(kernel: Counted, limits: Limits) -> float:
    """The least that a kernel can take on one core, by its operations and its weights."""
    return max(kernel.flops / limits.peak, kernel.weights / limits.from_memory(1))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of them lies."""
    ordered = sorted(values)
    return ordered[round(share * (len(ordered) - 1))]
