"""Relax: the default schedule for PrimFuncs of symbolic sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._tvm import dtype_of, param_buffers, tir
from .._tvm_rewrite import substitute
from .._tvm_symbolic import entry, size_variable, symbols, within_32_bits
from ..codegen.symbolic.families import one_family
from ..codegen.symbolic.kernel import NONE, OTHERS
from ..codegen.symbolic.learn import Example, Learnt, learnt
from ..codegen.symbolic.nothing import empties, is_empty, is_right_at_zero, outputs_of
from ..errors import SymbolicError
from ..language.decisions import deciding

Make = Callable[[Mapping[str, int]], Example]


def scheduled_for_all_sizes(name: str, func: Any, schedule: Callable[[Any], Any]) -> dict[str, Any]:
    """The PrimFunc as `schedule` makes it, for every size of its symbols: learnt from some; and
    those that it calls, by name. Raises SymbolicError where they differ in more than sizes.
    """
    known = symbols(func)

    def make(sizes: Mapping[str, int]) -> Example:
        numbers = {known[n]: tir.IntImm(dtype_of(known[n]), s) for n, s in sizes.items()}
        with deciding({}, fitted=True, lasting=True, sizes=sizes.values()):
            return Example(sizes, schedule(substitute(func, numbers)))

    cases = _cases(tuple(known), make)
    variables = {symbol: size_variable(symbol) for symbol in known}
    general = [within_32_bits(case.learnt.function(variables)) for case in cases]
    wrong = {
        variable
        for symbol, variable in variables.items()
        if not all(is_right_at_zero(case.learnt, symbol) for case in cases)
    }
    if len(cases) == 1 and not wrong:
        return {name: general[0]}
    which: Any = tir.IntImm("int32", 0)
    for number, case in enumerate(cases[1:], 1):
        which = tir.Select(tir.all(*(variables[n] == 1 for n in case.ones)), number, which)
    parts = {f"{name}_{n}": part for n, part in enumerate(general)}
    parts = {symbol: part.with_attr("global_symbol", symbol) for symbol, part in parts.items()}
    hollow = general[0].with_body(tir.Evaluate(tir.const(0)))
    outputs = [param_buffers(hollow)[place] for place in outputs_of(general[0])]
    which = tir.Select(is_empty(outputs), NONE, which)
    positive = [variable for variable in wrong if not empties(variable, outputs)]
    return {name: entry(hollow, [*parts], which, positive), **parts}


@dataclass(frozen=True)
class Case:
    """The kernel where these symbols are 1: a loop of one turn is none, what is left has others."""

    ones: Collection[str]
    learnt: Learnt


def _cases(names: Sequence[str], make: Make) -> list[Case]:
    """The kernels that differ in more than sizes; a later one where it fits, which names more
    symbols.
    """
    found: list[Case] = []
    for count in range(len(names) + 1):
        for ones in itertools.combinations(names, count):
            asked = [make(sizes) for sizes in _some(names, ones)]
            fitting = [case for case in found if set(case.ones) <= set(ones)]
            # What serves here without this case: the last of those, as an entry takes it.
            if not fitting or not all(fitting[-1].learnt.says(example) for example in asked):
                found.append(Case(ones, _learnt(names, ones, asked, make)))
    return found


def _some(names: Sequence[str], ones: Collection[str]) -> Iterator[dict[str, int]]:
    """Sizes where these are 1 and the others are more, each once the least and once large."""
    for shift in range(len(OTHERS) if len(ones) < len(names) else 1):
        yield {
            name: 1 if name in ones else OTHERS[(shift + 2 * place) % len(OTHERS)]
            for place, name in enumerate(names)
        }


def _learnt(
    names: Sequence[str], ones: Collection[str], asked: Sequence[Example], make: Make
) -> Learnt:
    """The kernel of one case, that gives all the examples `asked`."""
    free = [name for name in names if name not in ones]
    if not free:
        alone = learnt(asked)
        assert alone is not None, "one example is as it is"
        return alone
    *others, main = free

    def of_main(size: int, _: Any) -> Example:
        sizes = dict.fromkeys(names, 1) | {main: size}
        for place, name in enumerate(others):
            sizes[name] = OTHERS[(size + 2 * place) % len(OTHERS)] + 8 * place
        return make(sizes)

    families = one_family(main, of_main)
    least = families[0].least if families else None
    if least is None or least > 2 or not all(families[0].learnt.says(e) for e in asked):
        raise SymbolicError("the default schedules of some sizes differ in more than sizes")
    return families[0].learnt
