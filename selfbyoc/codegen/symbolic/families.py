"""The kernels that a symbolic size needs: one for each plan that many sizes have.

A family is learnt from examples of one plan: around whole tiles, small ones and far larger ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...ir.symbols import Range
from ...tir.allocations import has_open_registers
from .family import Decisions, Family, Lose
from .learn import Example, Learnt, learnt
from .plans import PAYS, Plans, key_of
from .served import FEW, Served, served

Decide = Callable[[int], Decisions]
Make = Callable[[int, Decisions], "Example | None"]
Widen = Callable[[Family], "Family | None"]
Beside = Callable[[Learnt, Decisions], Iterable[Example]]

MOST_PLANS = 3
MOST_GAPS = 4  # plans for the sizes that no family takes
ROUNDS = 6  # of examples that contradict what those before say
ENOUGH = 4  # examples of a family
EXAMPLES_OF_A_PLAN = (5, 8, 12)  # the more where the fewer say nothing of every size
EXAMPLES_OF_GAPS = (32,)
APART = 7  # sizes so far apart leave all residues of 8
TABLE = (*range(FEW + 1, 129), 160, 192, 197, 224, 256, 320, 384, 448, 512)
# Beside those that a plan is usual for: of all residues, mostly with rows left over at the end.
EXAMPLES = (53, 67, 98, 131, 83, 150, 179, 64, 104, 72, 60, 100, 136, 84, 108, 85, 115)
NEAR = (1, 2, 3, 9, 10, 11, 13, 17, 25, 33, 49)  # a family may begin there
FAR, FAR_STEPS = (509, 2054), (509, 512, 2051, 2054)


def families(
    symbol: str,
    decide: Decide,
    make: Make,
    lose: Lose,
    within: Range,
    beside: Beside,
    widen: Widen,
) -> Served:
    """The families of all sizes `within` a range; those up to FEW only join one of the same plan.

    `decide` says what the plan decides for a size, and `lose` how much longer it takes by other
    decisions; `make` schedules for one under such decisions, or returns None where they do not fit;
    `beside` for sizes of the other symbols that would tell another formula of these; `widen` makes
    a family one of the other symbols' sizes too, or returns None where it is not.
    """
    sizes = sizes_within(within)
    decided = _decided(sizes, decide)
    plans = Plans(decided, lose)
    found: dict[str, list[Family]] = {}

    def add(asked: Sequence[int], tried: list[str], pays: float, counts: Sequence[int]) -> bool:
        key = plans.best(asked, found, tried, pays)
        if key is None:
            return False
        tried.append(key)
        own = plans.members(asked)[key]
        made = _of_plan(symbol, decided[own[0]], own, make, beside, counts, within.most)
        closed = (f for f in made if not has_open_registers(f.learnt.function(f.learnt.symbols)))
        kept = [wide for f in closed if (wide := widen(f)) is not None]
        found[key] = [*found.get(key, ()), *kept]
        return True

    tried: list[str] = []
    while len(tried) < MOST_PLANS and add(sizes, tried, PAYS, EXAMPLES_OF_A_PLAN):
        pass
    taking = [family for of in found.values() for family in of]
    left = [size for size in sizes if not any(f.takes(size) for f in taking)]
    tried = []
    while left and len(tried) < MOST_GAPS and add(left, tried, 0, EXAMPLES_OF_GAPS):
        pass
    few = {size: key_of(decide(size)) for size in range(1, FEW + 1) if within.holds(size)}
    same = {s: next((f for f in found.get(key, ()) if f.takes(s)), None) for s, key in few.items()}
    return served(sizes, plans, found, same, within)


def _decided(sizes: Sequence[int], decide: Decide) -> dict[int, Decisions]:
    """What the plan decides for each size; where it decides the same for a few of all residues, it
    does so for all.
    """
    found = {size: decide(size) for size in (*sizes[::APART], sizes[-1])}
    if len({key_of(decisions) for decisions in found.values()}) == 1:
        return dict.fromkeys(sizes, found[sizes[0]])
    return {size: found[size] if size in found else decide(size) for size in sizes}


def sizes_within(within: Range) -> tuple[int, ...]:
    """The sizes above FEW that stand for all of a range, its ends among them."""
    ends = {max(within.nearest(size), FEW + 1) for size in (TABLE[0], TABLE[-1])}
    return tuple(sorted({*ends, *filter(within.holds, TABLE)}))


def one_family(symbol: str, make: Make) -> list[Family]:
    """The families of what decides nothing by a plan."""
    made = _of_plan(symbol, {}, TABLE, make, lambda found, told: (), EXAMPLES_OF_A_PLAN[-1:])
    return [f for f in made if f.step == 1 and f.is_endless]


def _of_plan(
    symbol: str,
    decisions: Decisions,
    members: Sequence[int],
    make: Make,
    beside: Beside,
    counts: Sequence[int] = EXAMPLES_OF_A_PLAN,
    most: int | None = None,
) -> list[Family]:
    """The families of one plan: sizes whose kernels have the same loops."""
    known: dict[int, Example | None] = {}

    def example(size: int) -> Example | None:
        if size not in known:
            known[size] = make(size, decisions)
        return known[size]

    every: list[Family] = []
    for count in counts:
        every = _of_examples(
            symbol, members, example, lambda found: beside(found, decisions), count, most
        )
        # What takes every size serves whole tiles too.
        if any(family.step == 1 and family.is_endless for family in every):
            every = [family for family in every if family.step == 1]
            break
    return [replace(found, decisions=decisions) for found in every]


def _of_examples(
    symbol: str,
    members: Sequence[int],
    example: Callable[[int], Example | None],
    beside: Callable[[Learnt], Iterable[Example]],
    count: int,
    most: int | None,
) -> list[Family]:
    """The families that this many examples show."""
    groups: dict[Any, list[Example]] = {}
    factor = members[-1] / members[0]
    wanted = [members[0] * factor ** (i / (count // 2 - 1)) for i in range(count // 2)]
    spread = sorted({min(members, key=lambda m: abs(m - size)) for size in wanted})
    spread = list(members) if len(members) <= count else spread
    made = (e for e in map(example, dict.fromkeys((*spread, *EXAMPLES))) if e is not None)
    for found in itertools.islice(made, count):
        groups.setdefault(found.loops, []).append(found)
    confirmed = (_confirmed(symbol, e, example, beside, most) for e in groups.values())
    return [found for found in confirmed if found is not None]


def _confirmed(
    symbol: str,
    group: Sequence[Example],
    make: Callable[[int], Example | None],
    beside: Callable[[Learnt], Iterable[Example]],
    most: int | None,
) -> Family | None:
    """What examples say, where those around whole tiles agree: there another tile's count, or
    another formula, would show. So it would far off: of two formulas that fit the small examples
    alike, a large one tells.
    """
    for _ in range(ROUNDS):
        found = learnt(group) if len(group) >= ENOUGH else None
        if found is None:
            return None
        known = {e.sizes[symbol] for e in group}
        more = [make(s) for s in around_tiles(found, symbol) if s not in known]
        more += [e for e in beside(found) if e.sizes not in [one.sizes for one in group]]
        alike = [e for e in more if e is not None and e.loops == group[0].loops]
        group = [*group, *alike]
        if all(found.says(e) for e in alike):
            far = [e for e in map(make, _far(found, symbol, most)) if e is not None]
            others = [e for e in far if e.loops == group[0].loops and not found.says(e)]
            if others and learnt([*group, *others]) is not None:
                group = [*group, *others]
                continue
            is_whole = most is not None and most <= _largest(group, symbol)
            beyond = any(e.sizes[symbol] > _largest(group, symbol) for e in far)
            is_endless = is_whole or (beyond and all(found.says(e) for e in far))
            limit = None if is_endless else _largest(group, symbol)
            near = next((e for e in _nearer(found, symbol, make) if found.says(e)), group[0])
            return Family(Learnt((*group, near), found.formulas), {}, symbol, limit, is_endless)
    return None


def _far(found: Learnt, symbol: str, most: int | None) -> list[int]:
    """Sizes far beyond the examples, but at most so large; none where an example is."""
    step, sizes = found.step(symbol) or 1, {e.sizes[symbol] for e in found.examples}
    far = FAR if step == 1 else FAR_STEPS
    if most is not None and most < far[-1]:
        last = range(most, most - step, -1) if most > max(sizes) else ()
        far = (*(size for size in far if size <= most), *last) if last else ()
    rests = {size % step for size in sizes}
    if most is None or most >= FAR[-1] + step:  # of large steps none of those may be one
        far = (*far, *(FAR[-1] + (rest - FAR[-1]) % step for rest in sorted(rests)))
    return [size for size in dict.fromkeys(far) if size % step in rests]


def _nearer(found: Learnt, symbol: str, make: Callable[[int], Example | None]) -> Iterator[Example]:
    """Examples of smaller sizes."""
    for size in NEAR:
        example = make(size) if size < found.least(symbol) else None  # below FEW: for the rest
        if example is not None:
            yield example


def _largest(group: Sequence[Example], symbol: str) -> int:
    return max(e.sizes[symbol] for e in group)


def around_tiles(found: Learnt, symbol: str) -> list[int]:
    """Sizes on both sides of where another tile begins: only the right tile and shift say so."""
    tiles = {count for count in found.tiles if symbol in count.symbols and count.tile > 1}
    sizes = {
        (k * c.tile - c.shift) // c.times + by for c in tiles for k in (2, 3) for by in (-1, 0, 1)
    }
    return sorted(size for size in sizes if size >= found.least(symbol))
