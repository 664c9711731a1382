"""Which kernel serves which size."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...ir.symbols import Range
from .family import Family
from .plans import Plans

Steps = tuple[int, int]  # of sizes that leave a rest after steps: the step and the rest

MOST_STEPS = 3  # more are rare, and each adds to the choice
LARGEST_FIRST = 128  # up to there each size is known
BEYOND = 64  # sizes after the last one: all residues of steps that families have
FEW = 8  # sizes with a kernel of their own: plans of few rows follow each of them


@dataclass(frozen=True)
class Served:
    """Families, and which one (-1: none) serves each size, and those between it and the size
    before. Of the sizes that leave a rest after steps, from the least of them on that it names,
    `by_rest` says so; the last of several.
    """

    families: list[Family]
    by_size: dict[int, int]
    by_rest: dict[Steps, dict[int, int]] = field(default_factory=dict)
    within: Range = field(default_factory=Range)

    @property
    def gaps(self) -> list[int]:
        """The sizes that none serves, of those that stand for themselves and for all between them
        and the one before, the largest for those beyond it, too.
        """
        sizes = sorted(self.by_size)
        found = []
        for before, size in itertools.pairwise([sizes[0] - 1, *sizes]):
            last = size + BEYOND if size == sizes[-1] else size
            there = filter(self.within.holds, range(before + 1, last + 1))
            is_apart = all(map(self._is_apart, there))
            found += [size] if self.by_size[size] < 0 and not is_apart else []
        return found

    def _is_apart(self, size: int) -> bool:
        rests = self.by_rest.items()
        return any(size % step == rest and size >= min(table) for (step, rest), table in rests)


def served(
    sizes: Sequence[int],
    plans: Plans,
    found: Mapping[str, Sequence[Family]],
    few: Mapping[int, Family | None],
    within: Range,
) -> Served:
    """Each size is served by the family by which it loses least; of several its plan's own, or that
    of the next larger size that has one. Families that serve none are left out.

    Every fourth or eighth size may have a plan of its own: those of one such step are apart. Where
    no family takes neighbours, all are: even and odd ones, say.
    """
    every = sorted((f for of in found.values() for f in of), key=lambda family: family.step)
    steps = Counter((f.step, f.rest) for key in plans.keys.values() for f in found.get(key, ()))
    usable = [f for f in every if f.step == 1]
    whole = dict(few) | _by_size(sizes, 1, plans, found, usable)
    by_rest: dict[Steps, dict[int, Family | None]] = {}
    for step, rest in _apart(steps, is_whole=all(whole[size] for size in sizes)):
        fitting = [f for f in every if step % f.step == 0 and rest % f.step == f.rest]
        own = [size for size in sizes if size % step == rest]
        table = _by_size(own, step, plans, found, fitting)
        first = max((size for size, family in table.items() if family is None), default=0)
        table = {size: family for size, family in table.items() if size > first}
        if table and min(table) <= LARGEST_FIRST:
            by_rest[step, rest] = table
    tables = [whole, *by_rest.values()]
    used = [f for f in every if any(f is c for table in tables for c in table.values())]
    numbers = [{size: _place(used, f) for size, f in table.items()} for table in tables]
    return Served(used, numbers[0], dict(zip(by_rest, numbers[1:], strict=True)), within)


def _place(used: Sequence[Family], family: Family | None) -> int:
    """Which of them it is; -1: none."""
    return next((n for n, other in enumerate(used) if other is family), -1)


def _apart(steps: Counter[Steps], *, is_whole: bool) -> list[Steps]:
    """The steps of the sizes that have families of their own, large ones last."""
    usual = [step for step, _ in steps.most_common() if step[0] > 1]
    for step in () if is_whole else sorted({step for step, _ in usual}):
        if all((step, rest) in steps for rest in range(step)):
            return [(step, rest) for rest in range(step)]
    return sorted(usual[:MOST_STEPS])


def _by_size(
    sizes: Sequence[int],
    step: int,
    plans: Plans,
    found: Mapping[str, Sequence[Family]],
    usable: Sequence[Family],
) -> dict[int, Family | None]:
    """The family of each size, and of all those by steps between it and the one before."""
    last: Sequence[Family] = ()
    chosen: dict[int, Family | None] = {}
    below = [max(FEW, sizes[0] - step) if sizes else FEW, *sizes]  # sizes may begin later
    for size, before in zip(reversed(sizes), reversed(below[:-1]), strict=True):
        own = [f for f in found.get(plans.keys[size], ()) if any(f is u for u in usable)]
        last = own or last

        def takes(family: Family, size: int = size, before: int = before) -> bool:
            to_the_end = size < sizes[-1] or family.is_endless
            return to_the_end and family.takes(size) and family.least <= max(before, FEW) + step

        taking = [f for f in (*own, *last, *usable) if takes(f)]
        if taking and taking[0] not in own and plans.are_timed:
            taking.sort(key=lambda f: round(plans.loss(size, f.decisions), 3))
        chosen[size] = next(iter(taking), None)
    return chosen
