"""A family: the sizes that one kernel serves, from the least of its examples to the largest, or to
any, where far larger ones agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .learn import Learnt

Decisions = Mapping[str, Any]
# How much longer a size takes by these than by its own; None where nobody says.
Lose = Callable[[int, Decisions], float | None]


@dataclass(frozen=True)
class Family:
    """A kernel for the sizes from `least` to `most` (None: all) that leave the same `rest` after
    steps of `step`.
    """

    learnt: Learnt
    decisions: Decisions
    symbol: str
    most: int | None
    is_endless: bool = False  # up to the largest size that there may be

    @property
    def least(self) -> int:
        """Its least size."""
        return self.learnt.least(self.symbol)

    @property
    def step(self) -> int:
        """1 where it takes every size between."""
        return self.learnt.step(self.symbol)

    @property
    def rest(self) -> int:
        """What its sizes leave after whole steps."""
        return self.learnt.examples[0].sizes[self.symbol] % self.step

    def takes(self, size: int) -> bool:
        """Whether it is right for a size."""
        in_range = self.least <= size and (self.most is None or size <= self.most)
        return in_range and size % self.step == self.rest
