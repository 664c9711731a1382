"""The kernels that a symbolic size needs: one for each plan that many sizes have.

A family are the sizes that one kernel serves: from the least of its examples to the largest, or to
any, where far larger ones agree.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .learn import Example, Learnt, learnt

Decisions = Mapping[str, Any]
Decide = Callable[[int], Decisions]
Make = Callable[[int, Decisions], "Example | None"]

FEW = 8  # sizes with a kernel of their own: plans of few rows follow each of them
MOST_PLANS = 5  # a plan more is a tenth of a second of compiling, and a few KB
MOST_GAPS = 4  # plans for the sizes that those do not serve
ENOUGH = 4  # examples of a family
MOST_EXAMPLES, MOST_OF_GAPS = 12, 32  # of a plan, and of the sizes that its families left
TABLE = (*range(FEW + 1, 129), 160, 192, 197, 224, 256, 320, 384, 448, 512)
# Beside those that a plan is usual for: of all residues, mostly with rows left over at the end.
EXAMPLES = (53, 67, 98, 131, 83, 150, 179, 64, 104, 72, 60, 100, 136, 84, 108, 85, 115)
NEAR = (1, 2, 3, 9, 10, 11, 13, 17, 25, 33, 49)  # a family may begin there
FAR, FAR_STEPS = (509, 2054), (509, 512, 2051, 2054)


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


@dataclass(frozen=True)
class Served:
    """Families, and which one (-1: none) serves each size, and those between it and the
    size before. Of the sizes that leave a rest after steps, `stepped` says so.
    """

    families: list[Family]
    by_size: dict[int, int]
    step: tuple[int, int] | None = None
    stepped: dict[int, int] = field(default_factory=dict)


def families(symbol: str, most: int | None, decide: Decide, make: Make) -> Served:
    """The families of all sizes; those up to FEW only join one of the same plan.

    `decide` says what the plan decides for a size; `make` schedules for one under such decisions,
    or returns None where they do not fit.
    """
    sizes = [size for size in TABLE if most is None or size <= most]
    decided = {size: decide(size) for size in sizes}
    keys = {size: _key(decisions) for size, decisions in decided.items()}
    found: dict[str, list[Family]] = {}
    for rounds, count in ((MOST_PLANS, MOST_EXAMPLES), (MOST_GAPS, MOST_OF_GAPS)):
        gaps = [s for s in sizes if not any(f.takes(s) for f in found.get(keys[s], ()))]
        for key, members in _by_weight(gaps, keys)[:rounds]:
            made = _of_plan(symbol, decided[members[0]], members, most, make, count)
            found[key] = [*found.get(key, ()), *made]
    first = range(1, min(FEW, FEW if most is None else most) + 1)
    few = {size: _key(decide(size)) for size in first}
    same = {s: next((f for f in found.get(key, ()) if f.takes(s)), None) for s, key in few.items()}
    return _served(sizes, keys, found, same)


def _by_weight(sizes: Sequence[int], keys: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """The plans of sizes, with those; first what most have, where every factor between sizes
    counts the same.
    """
    members: dict[str, list[int]] = {}
    for size in sizes:
        members.setdefault(keys[size], []).append(size)
    return sorted(members.items(), key=lambda item: -sum(1 / size for size in item[1]))


def one_family(symbol: str, most: int | None, make: Make) -> list[Family]:
    """The families of what decides nothing by a plan."""
    return [f for f in _of_plan(symbol, {}, TABLE, most, make) if f.step == 1 and f.is_endless]


def _key(decisions: Decisions) -> str:
    return json.dumps(decisions, sort_keys=True, default=str)


def _served(
    sizes: Sequence[int],
    keys: Mapping[int, str],
    found: Mapping[str, Sequence[Family]],
    few: Mapping[int, Family | None],
) -> Served:
    """Each size is served by its plan's own family, or that of the next larger size that has one: a
    tile that suits more rows suits these. Families that serve none are left out.

    Every fourth or eighth size may have a plan of its own: those of one such step are apart.
    """
    every = sorted((f for of in found.values() for f in of), key=lambda family: family.step)
    steps = Counter((f.step, f.rest) for key in keys.values() for f in found.get(key, ()))
    apart = [step for step, _ in steps.most_common() if step[0] > 1][:1]
    usable = [f for f in every if f.step == 1]
    whole = dict(few) | _by_size(sizes, keys, found, usable)
    stepped: dict[int, Family | None] = {}
    for step, rest in apart:
        fitting = [f for f in every if step % f.step == 0 and rest % f.step == f.rest]
        own = [size for size in sizes if size % step == rest]
        stepped = _by_size(own, keys, found, fitting)
    used = [f for f in every if any(f is c for c in (*whole.values(), *stepped.values()))]
    number = {id(family): n for n, family in enumerate(used)} | {id(None): -1}
    return Served(
        used,
        {size: number[id(family)] for size, family in whole.items()},
        apart[0] if stepped else None,
        {size: number[id(family)] for size, family in stepped.items()},
    )


def _by_size(
    sizes: Sequence[int],
    keys: Mapping[int, str],
    found: Mapping[str, Sequence[Family]],
    usable: Sequence[Family],
) -> dict[int, Family | None]:
    """The family of each size, and of all those between it and the one before."""
    last: Sequence[Family] = ()
    chosen: dict[int, Family | None] = {}
    below = [FEW, *sizes]
    for size, before in zip(reversed(sizes), reversed(below[:-1]), strict=True):
        own = [f for f in found.get(keys[size], ()) if any(f is u for u in usable)]
        last = own or last

        def takes(family: Family, size: int = size, before: int = before) -> bool:
            to_the_end = size < sizes[-1] or family.is_endless
            return to_the_end and family.takes(size) and family.least <= max(before + 1, FEW + 1)

        chosen[size] = next((f for f in (*own, *last, *usable) if takes(f)), None)
    return chosen


def _of_plan(
    symbol: str,
    decisions: Decisions,
    members: Sequence[int],
    most: int | None,
    make: Make,
    count: int = MOST_EXAMPLES,
) -> list[Family]:
    """The families of one plan: sizes whose kernels have the same loops."""
    groups: dict[Any, list[Example]] = {}
    known: dict[int, Example | None] = {}

    def example(size: int) -> Example | None:
        if size not in known:
            known[size] = None if most is not None and size > most else make(size, decisions)
        return known[size]

    factor = members[-1] / members[0]
    wanted = [members[0] * factor ** (i / (count // 2 - 1)) for i in range(count // 2)]
    spread = sorted({min(members, key=lambda m: abs(m - size)) for size in wanted})
    spread = list(members) if len(members) <= count else spread
    made = (e for e in map(example, dict.fromkeys((*spread, *EXAMPLES))) if e is not None)
    for found in itertools.islice(made, count):
        groups.setdefault(found.key, []).append(found)
    confirmed = (_confirmed(symbol, group, example, most) for group in groups.values())
    every = [replace(found, decisions=decisions) for found in confirmed if found is not None]
    # What takes every size serves whole tiles too.
    whole = any(family.step == 1 and family.is_endless for family in every)
    return [f for f in every if f.step == 1 or not whole]


def _confirmed(
    symbol: str, group: Sequence[Example], make: Callable[[int], Example | None], most: int | None
) -> Family | None:
    """What examples say, where those around whole tiles agree: there another tile's count, or
    another formula, would show.
    """
    for _ in range(3):
        found = learnt(group) if len(group) >= ENOUGH else None
        if found is None:
            return None
        known = {e.sizes[symbol] for e in group}
        more = [make(s) for s in _around_tiles(found, symbol) if s not in known]
        alike = [e for e in more if e is not None and e.key == group[0].key]
        group = [*group, *alike]
        if all(found.says(e) for e in alike):
            sizes = (FAR if found.step(symbol) == 1 else FAR_STEPS) if most is None else (most,)
            rests = {e.sizes[symbol] % (found.step(symbol) or 1) for e in group}
            here = [size for size in sizes if size % (found.step(symbol) or 1) in rests]
            far = [e for e in map(make, here) if e is not None]
            is_endless = bool(far) and all(found.says(e) for e in far)
            limit = most if is_endless else _largest(group, symbol)
            near = next((e for e in _nearer(found, symbol, make) if found.says(e)), group[0])
            return Family(Learnt((*group, near), found.formulas), {}, symbol, limit, is_endless)
    return None


def _nearer(found: Learnt, symbol: str, make: Callable[[int], Example | None]) -> Iterator[Example]:
    """Examples of smaller sizes."""
    for size in NEAR:
        example = make(size) if size < found.least(symbol) else None  # below FEW: for the rest
        if example is not None:
            yield example


def _largest(group: Sequence[Example], symbol: str) -> int:
    return max(e.sizes[symbol] for e in group)


def _around_tiles(found: Learnt, symbol: str) -> list[int]:
    tiles = {count.tile for count in found.tiles if symbol in count.symbols and count.tile > 1}
    sizes = {k * tile + by for tile in tiles for k in (2, 3) for by in (-1, 1)}
    return sorted(size for size in sizes if size >= found.least(symbol))
