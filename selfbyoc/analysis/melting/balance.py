"""Parallel regions of a kernel: tasks for each core, and the speed-up that their counts allow.

TVM splits the iterations of a parallel loop into one range a core, all of the same length but the
last: the core with the longest range decides. What lies outside of parallel loops runs on one core.
Work is counted in multiply-adds and other elements alike, so that this compares plans; it does not
predict times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .loop_nest import PARALLEL, Loop, Nest, Stage


@dataclass(frozen=True)
class Region:
    """One parallel loop: so many equal tasks, with a share of the work of the kernel."""

    stages: tuple[str, ...]
    tasks: int
    share: float

    def busiest(self, cores: int) -> int:
        """Tasks of the core that has most."""
        return -(-self.tasks // cores)

    def use(self, cores: int) -> float:
        """The share of the cores' time that they work."""
        return self.tasks / (self.busiest(cores) * cores)


@dataclass(frozen=True)
class Balance:
    """The regions of a kernel in order, and the share of its work that is in none."""

    regions: tuple[Region, ...]
    serial: float

    def speed_up(self, cores: int) -> float:
        """Over one core, were all iterations equal and regions free."""
        return 1 / (self.serial + sum(r.share / r.tasks * r.busiest(cores) for r in self.regions))

    def use(self, cores: int) -> float:
        """The share of all cores' time that they work."""
        return self.speed_up(cores) / cores


def balance(nest: Nest) -> Balance:
    """Of a scheduled function."""
    total = sum(map(_work, nest.stages)) or 1
    regions = tuple(
        Region(
            tuple(dict.fromkeys(stage.name for stage in loop.stages)),
            loop.extent,
            sum(map(_work, loop.stages)) / total,
        )
        for loop in _parallel(nest.body)
    )
    return Balance(regions, max(0.0, 1 - sum(region.share for region in regions)))


def _work(stage: Stage) -> int:
    return stage.runs


def _parallel(body: tuple[Loop | Stage, ...]) -> Iterator[Loop]:
    """The outermost parallel loops, in order."""
    for node in body:
        if isinstance(node, Loop):
            yield from [node] if node.kind == PARALLEL else _parallel(node.body)
