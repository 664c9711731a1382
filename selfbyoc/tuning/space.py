"""What to try next in a composite's own space: changes of the best decisions, and random ones."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from ..language.decisions import Choice

Taken = Mapping[str, Any]

_WHOLE = 20_000  # spaces up to this size are searched to the end
_GUESSES = 50


class Space:
    """The decisions of one task, as far as its functions asked for them, and what was tried.

    One decision may bring up others: what is known to be open grows with each candidate.
    """

    def __init__(self, seed: int) -> None:
        self.offered: dict[str, tuple[Any, ...]] = {}
        self._random = random.Random(seed)
        self._tried: set[tuple[tuple[str, str], ...]] = set()

    def learn(self, choices: Mapping[str, Choice]) -> None:
        """Note what a candidate asked for, and that what it took was tried."""
        for name, choice in choices.items():
            known = self.offered.get(name, ())
            more = tuple(c for c in choice.candidates if c not in known)
            self.offered[name] = known + more
        self._is_new({name: choice.taken for name, choice in choices.items()})

    @property
    def size(self) -> int:
        """How many decisions there are, as far as is known; many may come out as the same code."""
        return math.prod(map(len, self.offered.values()))

    def tried(self, taken: Taken) -> None:
        """Note decisions of an earlier run."""
        self._is_new(taken)

    def proposal(self, parents: Sequence[Taken]) -> Taken | None:
        """Decisions that were not proposed before, `parents` being the best known, best first.

        None: there are no others.
        """
        if not self.offered:
            return None
        for _ in range(_GUESSES):
            found = self._guess(parents)
            if self._is_new(found):
                return found
        return self._left()

    def _guess(self, parents: Sequence[Taken]) -> Taken:
        """A fifth is random, so that no good corner is missed; the rest changes few decisions."""
        if not parents or self._random.random() < 0.2:
            return {n: self._random.choice(offered) for n, offered in self.offered.items()}
        parent = parents[min(int(self._random.expovariate(0.7)), len(parents) - 1)]
        found = {n: v for n, v in parent.items() if n in self.offered}
        count = min(self._random.choice((1, 1, 1, 2, 2, 3)), len(self.offered))
        for name in self._random.sample(sorted(self.offered), count):
            found[name] = self._changed(self.offered[name], found.get(name))
        return found

    def _changed(self, offered: Sequence[object], now: object) -> object:
        """Half of the changes go one step up or down: candidates mostly are in an order."""
        if now in offered and self._random.random() < 0.5:
            at = offered.index(now) + self._random.choice((-1, 1))
            return offered[max(0, min(at, len(offered) - 1))]
        return self._random.choice(offered)

    def _left(self) -> Taken | None:
        """Any one that was not proposed yet."""
        if self.size > _WHOLE:
            return None
        names = list(self.offered)
        orders = [self._random.sample(o, len(o)) for o in self.offered.values()]
        for values in itertools.product(*orders):
            found = dict(zip(names, values, strict=True))
            if self._is_new(found):
                return found
        return None

    def _is_new(self, taken: Taken) -> bool:
        key = tuple(sorted((name, repr(value)) for name, value in taken.items()))
        is_new = key not in self._tried
        self._tried.add(key)
        return is_new
