"""The sizes that no family serves, and the few that are slower in one than by themselves.

Those of the same loops share a function where formulas give all that they differ in: every one of
its sizes is an example. Others have a function each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import SymbolicError
from ...tir.allocations import has_open_registers
from .family import Family
from .formula import Sizes
from .learn import Example, Learnt, learnt
from .maker import Fixed, Maker
from .others import Make, of_others_too
from .served import FEW

FIRST_ALONE = (1, 2, 3, 4, FEW)  # where these need no kernel of their own, those between do not

Decide = Callable[[int], Mapping[str, Any]]
Groups = list[list[Example]]  # of the same loops each


def slower_sizes(
    maker: Maker, main: str, fixed: Fixed, by_size: Mapping[int, int], general: Sequence[Learnt]
) -> list[int]:
    """The few sizes that have other loops alone than in the family that takes them: one tile of
    rows needs no pieces, say.
    """
    if None in fixed.values():
        return []

    def is_slower(size: int) -> bool:
        try:
            alone = maker.alone(next(maker.around(main, size, fixed)))
        except SymbolicError:  # it serves as a part of the family only
            return False
        return alone.loops != general[by_size[size]].examples[0].loops

    found = [size for size in FIRST_ALONE if size in by_size and is_slower(size)]
    between = range(FIRST_ALONE[-2] + 1, FEW) if any(size > 1 for size in found) else ()
    return sorted([*found, *(size for size in between if size in by_size and is_slower(size))])


def kernels_alone(
    maker: Maker,
    main: str,
    sizes: Iterable[int],
    fixed: Fixed,
    decide: Decide,
    families: Sequence[Family],
) -> Iterator[tuple[Sequence[int], Learnt]]:
    """Each of these sizes of `main` with others of the same kernel, and what that is; of one alone
    it is for all of the other symbols. What is planned for a size may have no kernel for all of
    these: a family that takes the size has one.
    """

    def make(at: Sizes) -> Example | None:
        return maker.example(at, decide(at[main]))

    groups: dict[Any, dict[int, Groups]] = {}
    for size in sizes:
        found = _examples(maker, main, size, fixed, decide)
        groups.setdefault(found[0][0].loops, {})[size] = found
    for own in groups.values():
        usual = [example for of_size in own.values() for example in of_size[0]]
        together = _of_every(usual, make, fixed) if len(own) > 1 else None
        # It keeps its sums in registers as those of each size do.
        if together is not None and not has_open_registers(together.function(together.symbols)):
            yield list(own), together
            continue
        for size, of_size in own.items():
            every = (_of_every(examples, make, fixed) for examples in of_size)
            wide = (family.learnt for family in families if family.takes(size))
            alone = next(filter(None, itertools.chain(every, wide)), None)
            if alone is None:
                raise maker.no_kernel(f"of {main}={size}")
            yield [size], alone


def _of_every(examples: list[Example], make: Make, fixed: Fixed) -> Learnt | None:
    """What some examples say, if it is so of all of the other symbols."""
    found = learnt(examples)
    return None if found is None else of_others_too(found, make, fixed)


def _examples(maker: Maker, main: str, size: int, fixed: Fixed, decide: Decide) -> Groups:
    """The kernels of one size of `main`, of several of the other symbols; those of the usual loops
    first.
    """
    around = maker.around(main, size, fixed)
    told = decide(size) if None in fixed.values() else None
    tried = [maker.alone(s) if told is None else maker.example(s, told) for s in around]
    groups: dict[Any, list[Example]] = {}
    for example in tried:
        if example is not None:
            groups.setdefault(example.loops, []).append(example)
    if not groups:
        raise maker.no_kernel(f"of {main}={size}")
    return sorted(groups.values(), key=len, reverse=True)
