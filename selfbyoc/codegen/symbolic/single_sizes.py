"""The sizes that no family serves, and the few that are slower in one than by themselves.

Those of the same loops share a function where formulas give all that they differ in: every one of
its sizes is an example. Others have a function each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...errors import SymbolicError
from ...tir.allocations import has_open_registers
from .learn import Example, Learnt, learnt
from .maker import OTHERS, Maker
from .served import FEW

FIRST_ALONE = (1, 2, 3, 4, FEW)  # where these need no kernel of their own, those between do not

Fixed = Mapping[str, int | None]  # of the other symbols: 1, or (None) anything above
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
    maker: Maker, main: str, sizes: Iterable[int], fixed: Fixed, decide: Decide
) -> Iterator[tuple[Sequence[int], Learnt]]:
    """Each of these sizes of `main` with others of the same kernel, and what that is; of one alone
    it is for all of the other symbols.
    """
    groups: dict[Any, dict[int, Groups]] = {}
    for size in sizes:
        found = _examples(maker, main, size, fixed, decide)
        groups.setdefault(found[0][0].loops, {})[size] = found
    for own in groups.values():
        usual = {size: of_size[0] for size, of_size in own.items()}
        together = _of_all(usual, fixed) if len(own) > 1 else None
        if together is not None:
            yield list(own), together
            continue
        for size, of_size in own.items():
            alone = next(filter(None, (_of_every(e, of_size, fixed) for e in of_size)), None)
            if alone is None:
                raise maker.no_kernel(f"of {main}={size}")
            yield [size], alone


def _of_every(examples: list[Example], groups: Groups, fixed: Fixed) -> Learnt | None:
    """What some examples of a size say, if it is so of all of the other symbols."""
    found = learnt(examples)
    if found is None:
        return None
    others = [e for group in groups for e in group if group is not examples and found.says(e)]
    wide = Learnt((*examples, *others), found.formulas)
    return wide if is_general(wide, fixed) else None


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


def _of_all(own: Mapping[int, Sequence[Example]], fixed: Fixed) -> Learnt | None:
    """The kernel of all of these sizes, if there is one that keeps its sums in registers as those
    of each size do.
    """
    found = learnt([example for examples in own.values() for example in examples])
    if found is None or not is_general(found, fixed):
        return None
    return None if has_open_registers(found.function(found.symbols)) else found


def is_general(found: Learnt, fixed: Fixed) -> bool:
    """Whether it takes every size above 1 of the symbols that are not fixed: what a tile hides of
    a few, many show.
    """
    free = [name for name, one in fixed.items() if one is None]
    every = {name: {example.sizes[name] for example in found.examples} for name in free}
    return all({2, max(OTHERS)} <= every[name] and found.step(name) == 1 for name in free)
