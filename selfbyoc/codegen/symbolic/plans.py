"""Which plans a kernel has functions of: those without which its sizes lose.

Of 9 rows the best tile is one of 3, of 10 rows one of 5. How much longer a size takes by the plan
of another one, a planner may say (`choose`'s `time`): most lose nothing that is worth a function,
half a second of a build. Of planners that do not, what most sizes have is taken.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...language.decisions import UNKNOWN_LOSS
from .family import Decisions, Family, Lose

PAYS = 0.01  # of the time, that a plan more saves
UNSERVED = 2.0  # a size that no plan takes: as if it took so much longer
MOST_ASKED = 7  # plans that are looked at
FAR_APART = 1.2  # factor between the sizes that are asked about, beyond the first few
FIRST = 8
ROUND, PADDED = (16, 32, 64, 128, 256, 512), 2  # sizes that people pad to, and how much they count


@dataclass(frozen=True)
class Plans:
    """What sizes are decided, and how much each loses by the decisions of others."""

    decided: Mapping[int, Decisions]
    lose: Lose
    _losses: dict[tuple[str, int], float] = field(default_factory=dict)

    @cached_property
    def keys(self) -> dict[int, str]:
        """The plan of each size."""
        return {size: key_of(decisions) for size, decisions in self.decided.items()}

    @cached_property
    def are_timed(self) -> bool:
        """Whether planners say how long sizes take by each."""
        size, told = next(iter(self.decided.items()))
        return len(set(self.keys.values())) > 1 and self.lose(size, told) is not None

    def loss(self, size: int, decisions: Decisions) -> float:
        """How much longer a size takes by these decisions than by its own."""
        key = key_of(decisions)
        if self.keys[size] == key:
            return 1.0
        if (key, size) not in self._losses:
            self._losses[key, size] = self.lose(size, decisions) or UNKNOWN_LOSS
        return self._losses[key, size]

    def members(self, sizes: Iterable[int]) -> dict[str, list[int]]:
        """Of these sizes, those of each plan."""
        found: dict[str, list[int]] = {}
        for size in sizes:
            found.setdefault(self.keys[size], []).append(size)
        return found

    def best(
        self,
        sizes: Sequence[int],
        found: Mapping[str, Sequence[Family]],
        tried: Collection[str],
        pays: float,
    ) -> str | None:
        """The plan that saves these sizes most beside the families that were found, such a part of
        the time at least; None where there is none. Without times, what most sizes have.
        """
        members = self.members(sizes)
        if not self.are_timed:
            order = sorted(members, key=lambda key: -sum(1 / size for size in members[key]))
            return next((key for key in order if key not in tried), None)
        asked = _weights(sizes)
        every = dict(zip(sizes, _steps(sizes), strict=True))
        order = sorted(members, key=lambda key: -sum(every[size] for size in members[key]))
        now = {size: self._now(size, found) for size in asked}

        def saved(key: str) -> float:
            told = self.decided[members[key][0]]
            each = (w * (now[n] - self.loss(n, told)) for n, w in asked.items() if now[n] > 1)
            return round(sum(max(0.0, one) for one in each), 3)

        rest = [key for key in order if key not in tried][:MOST_ASKED]
        key = max(rest, key=saved, default=None)  # of several, what most sizes have
        return key if key is not None and (not found or saved(key) >= pays) else None

    def _now(self, size: int, found: Mapping[str, Sequence[Family]]) -> float:
        taking = [f.decisions for of in found.values() for f in of if f.takes(size)]
        return min((self.loss(size, told) for told in taking), default=UNSERVED)


def key_of(decisions: Decisions) -> str:
    """A text that is equal for equal decisions."""
    return json.dumps(decisions, sort_keys=True, default=str)


def _weights(sizes: Sequence[int]) -> dict[int, float]:
    """The sizes that are asked about: the first, and of the others some that are as many times
    larger each. The share of each and those up to the next one, where every factor counts the same
    and sizes that people pad to count more.
    """
    asked = list(sizes[:FIRST])
    for size in sizes[FIRST:]:
        if size >= asked[-1] * FAR_APART or size in ROUND:
            asked.append(size)
    steps = [s * (PADDED if n in ROUND else 1) for n, s in zip(asked, _steps(asked), strict=True)]
    return {size: step / sum(steps) for size, step in zip(asked, steps, strict=True)}


def _steps(sizes: Sequence[int]) -> list[float]:
    """How far it is from each size to the next one, as a part of it."""
    ends = (*sizes, sizes[-1] * FAR_APART)
    return [above / size - 1 for size, above in itertools.pairwise(ends)]
