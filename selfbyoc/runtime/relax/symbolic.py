"""Relax: the default schedule for PrimFuncs of symbolic sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...codegen.symbolic.choice import NONE
from ...codegen.symbolic.empty import demanded, is_empty, is_right_at_zero, outputs_of
from ...codegen.symbolic.families import one_family
from ...codegen.symbolic.learn import Example, Learnt, learnt
from ...errors import SymbolicError
from ...language.decisions import for_every_size_of
from ...tir.allocations import placed
from ...tvm import Analyzer, SBlock, dtype_of, param_buffers, tir, walk
from ...tvm.dispatch import Callee, entry
from ...tvm.rewrite import folded, substitute
from ...tvm.symbolic import size_variable, symbols, within_32_bits
from ...tvm.types import PrimExpr, PrimFunc, TirNode

OTHERS = (3, 2, 17, 5, 61, 28, 43, 30)  # sizes of a symbol beside the one that is looked at
NEIGHBOURS = range(22, 30)  # of all rests after strides
Make = Callable[[Mapping[str, int]], "Example | None"]


def all_extents(func: PrimFunc) -> list[PrimExpr]:
    """The extents of a PrimFunc's buffers and axes."""
    shapes = (getattr(buffer, "shape", None) for buffer in param_buffers(func))
    found = [extent for shape in shapes if shape is not None for extent in shape]

    def visit(node: TirNode) -> None:
        if isinstance(node, SBlock):
            found.extend(extent for buffer in node.alloc_buffers for extent in buffer.shape)
            found.extend(axis.dom.extent for axis in node.iter_vars)

    walk(func.body, visit)
    return found


def scheduled_for_all_sizes(
    name: str, func: PrimFunc, schedule: Callable[[PrimFunc], PrimFunc]
) -> dict[str, PrimFunc]:
    """The PrimFunc as `schedule` makes it, for every size of its symbols: learnt from some; and
    those that it calls, by name. Raises SymbolicError where they differ in more than sizes.
    """
    known, extents = symbols(func), all_extents(func)
    constant = {*Example({}, func).integers} - {1}

    def make(sizes: Mapping[str, int]) -> Example | None:
        numbers = {known[n]: tir.IntImm(dtype_of(known[n]), s) for n, s in sizes.items()}
        found = (substitute(e, numbers) for e in extents if not isinstance(e, tir.IntImm))
        opened = {int(Analyzer().simplify(extent)) for extent in found}
        is_short = min(opened) < 1 or (1 in opened and 1 not in sizes.values())
        if is_short or opened & constant:
            return None  # a schedule makes no loop of it; or takes it for a constant one
        with for_every_size_of(opened):
            return Example(sizes, schedule(folded(substitute(func, numbers))))

    cases = _cases(tuple(known), make)
    of_some = cases[0].learnt.examples[0].func
    variables = {symbol: size_variable(symbol, of_some) for symbol in known}
    general = [within_32_bits(case.learnt.function(variables)) for case in cases]
    wrong = {
        variable
        for symbol, variable in variables.items()
        if not all(is_right_at_zero(case.learnt, symbol) for case in cases)
    }
    if len(cases) == 1 and not wrong:
        return {name: placed(general[0])}
    _check_handed_on(general[0])
    which: Any = tir.IntImm("int32", 0)
    for number, case in enumerate(cases[1:], 1):
        which = tir.Select(tir.all(*(variables[n] == 1 for n in case.ones)), number, which)
    parts = {f"{name}_{n}": placed(part) for n, part in enumerate(general)}
    parts = {symbol: part.with_attr("global_symbol", symbol) for symbol, part in parts.items()}
    hollow = general[0].with_body(tir.Evaluate(tir.const(0)))
    outputs = [param_buffers(hollow)[place] for place in outputs_of(general[0])]
    which = tir.Select(is_empty(outputs), NONE, which)
    return {name: entry(hollow, [*map(Callee, parts)], which, demanded(wrong, outputs)), **parts}


def _check_handed_on(func: PrimFunc) -> None:
    """0.27 hands floats that it computes as others from one function to another as integers, which
    that one refuses.
    """
    for buffer in param_buffers(func):
        if str(buffer.dtype).startswith(("bfloat16", "float8")):
            raise SymbolicError(f"TVM hands no {buffer.dtype} to a kernel that is chosen by size")


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
            asked = [e for e in map(make, _some(names, ones)) if e is not None]
            if not asked and found:
                continue
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
        alone = learnt(asked) if asked else None
        if alone is None:
            raise SymbolicError("no size is another one than the constant extents")
        return alone
    *others, main = free

    def around(size: int) -> Iterator[dict[str, int]]:
        for shift in range(len(OTHERS)):
            sizes = dict.fromkeys(names, 1) | {main: size}
            for place, name in enumerate(others):
                sizes[name] = OTHERS[(size + shift + 2 * place) % len(OTHERS)] + 8 * place
            yield sizes

    def of_main(size: int, _: object) -> Example | None:
        return next((e for e in map(make, around(size)) if e is not None), None)

    families = (f for f in one_family(main, of_main) if all(f.learnt.step(n) == 1 for n in others))
    usual = dict.fromkeys(names, 1) | dict(zip(free, itertools.cycle((61, 43)), strict=False))
    beside = [make(usual | {name: size}) for name in others for size in NEIGHBOURS]
    for family in families:
        below = map(partial(of_main, _=None), range(2, family.least))
        if all(e is None or family.learnt.says(e) for e in (*asked, *beside, *below)):
            return family.learnt
    raise SymbolicError("the default schedules of some sizes differ in more than sizes")
