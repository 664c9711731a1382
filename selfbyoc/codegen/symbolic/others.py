"""What a kernel that is learnt says of the symbols beside its own, each of which is 1 or anything
above.

Its examples have a few of their sizes, of which another formula may say the same: `6 * ceil(n / 12)
+ 12` is `12 * ceil(n / 16)` at 17, 38 and 61. So sizes on both sides of where a tile begins are
tried, and large ones; where one contradicts it, it is learnt anew with that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from .families import around_tiles
from .formula import Sizes
from .learn import Example, Learnt, learnt
from .maker import OTHERS, Fixed

Make = Callable[[Sizes], Example | None]

ROUNDS = 4  # of examples that contradict what those before say
LARGE = 509


def of_others_too(found: Learnt, make: Make, fixed: Fixed) -> Learnt | None:
    """What is known, with the other symbols' sizes that it holds for; None where these are not all
    above 1.
    """
    free = free_ones(fixed)
    for _ in range(ROUNDS if free else 0):
        made = [*_of_some(found, make, free), *beside(found, make, free)]
        right = [e for e in made if found.says(e)]
        # Of other loops one says nothing: they may be those of one turn.
        loops = found.examples[0].loops
        wrong = [e for e in made if e.loops == loops and not any(e is r for r in right)]
        if not wrong:
            wide = Learnt((*found.examples, *right), found.formulas)
            return wide if _is_general(wide, free) else None
        again = learnt([*(e for e in found.examples if e.loops == loops), *wrong])
        if again is None:
            return None
        others = (e for e in found.examples if e.loops != loops and again.says(e))
        found = Learnt((*again.examples, *others), again.formulas)
    return None if free else found


def free_ones(fixed: Fixed) -> list[str]:
    """The symbols that may be anything above 1."""
    return [name for name, one in fixed.items() if one is None]


def beside(found: Learnt, make: Make, free: Iterable[str]) -> Iterator[Example]:
    """Examples on both sides of where a tile of another symbol begins, and of a large size of it,
    within its range or not.
    """
    first = found.examples[0].sizes
    for name in free:
        for size in (*around_tiles(found, name), LARGE):
            made = make({**first, name: size})
            if made is not None:
                yield made


def _of_some(found: Learnt, make: Make, free: Sequence[str]) -> Iterator[Example]:
    """Of the usual sizes of the other symbols."""
    for example, size in itertools.product(found.examples[:2], OTHERS):
        made = make({**example.sizes, **dict.fromkeys(free, size)})
        if made is not None:
            yield made


def _is_general(found: Learnt, free: Sequence[str]) -> bool:
    """Whether it takes every size above 1 of these symbols."""
    every = {name: {example.sizes[name] for example in found.examples} for name in free}
    return all({2, max(OTHERS)} <= every[name] and found.step(name) == 1 for name in free)
