"""The functions of a kernel of symbolic sizes: one for each family of sizes, and one that chooses.

One symbol, the last of the shapes as a rule, has families (families.py). Any other one, such as a
batch before it, is either 1 or anything above.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..._tvm import tir
from ..._tvm_alignment import any_alignment
from ..._tvm_symbolic import entry, size_variable
from ...errors import ScheduleError
from ...language.decisions import deciding
from ..final import finished
from .families import FEW, families
from .formula import Sizes
from .learn import Example, Learnt, learnt

if TYPE_CHECKING:
    from ..lower import External

OTHERS = (3, 2, 5, 4, 7)  # sizes of the other symbols in examples
MOST_ALONE, LAST_ALONE = 24, 128  # sizes with a kernel of their own


@dataclass
class Chosen:
    """The kernels of some sizes, and which of them each size of the symbol with families takes."""

    functions: list[Any] = field(default_factory=list)
    by_size: dict[int, int] = field(default_factory=dict)
    step: tuple[int, int] | None = None
    stepped: dict[int, int] = field(default_factory=dict)  # the same for every so many sizes

    def number(self, size: Any, first: int) -> Any:
        """Which kernel a size takes, as an expression; `first` are before these."""
        found = _number(size, self.by_size, first)
        if self.step is None:
            return found
        step, rest = self.step
        is_one = tir.all(size > FEW, tir.floormod(size, step) == rest)
        return tir.Select(is_one, _number(size, self.stepped, first), found)


@dataclass(frozen=True)
class Maker:
    """Schedules a kernel at some sizes."""

    source: External
    target: Any

    def decided(self, sizes: Sizes) -> dict[str, Any]:
        """What its plan decides for these sizes, that fits others too."""
        with deciding({}, fitted=True, lasting=True) as asked, self.target:
            self._plan(self.source.at(sizes))
        return asked.taken

    def example(self, sizes: Sizes, told: Mapping[str, Any] | None) -> Example | None:
        """The kernel of these sizes, decided so (None: as for these sizes alone); None where they
        decide otherwise.
        """
        source, lasting = self.source.at(sizes), told is not None
        with deciding(told, fitted=True, lasting=lasting) as asked, self.target:
            if told:
                self._plan(source)
                if any(asked.taken.get(name) != value for name, value in told.items()):
                    return None
            return Example(sizes, _bare(self._scheduled(source)))

    def _plan(self, source: External) -> None:
        from ..lower import match_of, packed_params
        from ..planned import plan_of

        packed = {p.arg: p.value.shape for p in packed_params(source).values()}
        plan_of(match_of(source), packed)

    def _scheduled(self, source: External) -> Any:
        from ..lower import schedule_external

        return schedule_external(source, self.target)[1].mod["main"]


def _bare(func: Any) -> Any:
    """A function without what we note on it: that is of its sizes."""
    for name in [str(n) for n in func.attrs.keys()]:  # noqa: SIM118 (no Python dict)
        if name in ("global_symbol", "Composite") or name.startswith("tefuse."):
            func = func.without_attr(name)
    return func


def symbolic_functions(source: External, target: Any) -> dict[str, Any]:
    """Symbol -> finished PrimFunc of a kernel, the kernel's own symbol first.

    Raises ScheduleError where the schedules of several sizes are not those of one kernel.
    """
    maker = Maker(source, target)
    variables = {name: size_variable(name) for name in source.symbols}
    main, *others = reversed(source.symbols)
    cases = list(itertools.product((1, None), repeat=len(others)))
    functions: list[Any] = []
    which: Any = tir.IntImm("int32", -1)
    for case in reversed(cases):
        fixed = dict(zip(others, case, strict=True))
        found = _chosen(maker, main, fixed, variables)
        number = found.number(variables[main], len(functions))
        is_case = [variables[name] == 1 for name, size in fixed.items() if size == 1]
        which = tir.Select(tir.all(*is_case), number, which) if is_case else number
        functions += found.functions
    symbols = [f"{source.symbol}_{n}" for n in range(len(functions))]
    first = any_alignment(entry(_signature(maker, variables), symbols, which))
    parts = zip(symbols, (finished(f, target) for f in functions), strict=True)
    found = {source.symbol: first, **dict(parts)}
    return {name: func.with_attr("global_symbol", name) for name, func in found.items()}


def _chosen(
    maker: Maker, main: str, fixed: Mapping[str, int | None], variables: Mapping[str, Any]
) -> Chosen:
    """The kernels for all sizes of `main`; the other symbols are 1, or (None) above that."""
    most, found = maker.source.symbols[main], Chosen()

    def decide(size: int) -> dict[str, Any]:
        return maker.decided(next(_around(maker, main, size, fixed)))

    def make(size: int, told: Mapping[str, Any]) -> Example | None:
        return maker.example(next(_around(maker, main, size, fixed)), told)

    served = families(main, most, decide, make)
    found.functions = [family.learnt.function(variables) for family in served.families]
    found.by_size = {size: n for size, n in served.by_size.items() if n >= 0}
    if min(served.stepped.values(), default=-1) >= 0:
        found.step, found.stepped = served.step, served.stepped
    gaps = [size for size, n in served.by_size.items() if n < 0]
    if len(gaps) > MOST_ALONE or max(gaps, default=0) > LAST_ALONE:
        raise _no_kernel(maker, f"of {main}={gaps[-1]}")
    for size in gaps:
        alone = _of_one_size(maker, main, size, fixed)
        found.by_size[size] = len(found.functions)
        found.functions.append(alone.function(variables))
    if served.families:
        found.by_size[0] = 0  # loops over no tiles
    return found


def _of_one_size(maker: Maker, main: str, size: int, fixed: Mapping[str, int | None]) -> Learnt:
    """The kernel of one size of `main`, for all of the other symbols."""
    told = None
    examples = []
    for sizes in _around(maker, main, size, fixed):
        if any(other is None for other in fixed.values()):
            told = maker.decided(sizes) if told is None else told
        example = maker.example(sizes, told)
        examples += [example] if example else []
    groups: dict[Any, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.key, []).append(example)
    found = learnt(max(groups.values(), key=len)) if groups else None
    if found is None or (None in fixed.values() and len(found.examples) < len(OTHERS) - 1):
        raise _no_kernel(maker, f"of {main}={size}")
    return found


def _around(maker: Maker, main: str, size: int, fixed: Mapping[str, int | None]) -> Iterator[Sizes]:
    """Sizes of all symbols, with this one of `main`; the others vary, for each size otherwise."""
    for shift in range(len(OTHERS) if None in fixed.values() else 1):
        found = {main: size}
        for place, (name, one) in enumerate(fixed.items()):
            other = OTHERS[(size + shift + place * 2) % len(OTHERS)]
            found[name] = one or min(other, maker.source.symbols[name] or other)
        yield {name: found[name] for name in maker.source.symbols}


def _no_kernel(maker: Maker, what: str) -> ScheduleError:
    names = ", ".join(name.removeprefix("tefuse.") for name in maker.source.composites)
    symbols = ", ".join(maker.source.symbols)
    return ScheduleError(
        f"composite {names}: no kernel {what}, with {symbols} symbolic: its schedules for some "
        f"sizes differ in more than sizes"
    )


def _number(size: Any, by_size: Mapping[int, int], first: int) -> Any:
    """Which kernel a size takes, as an expression; a size between two known ones takes that of the
    larger one, and any beyond them that of the largest.
    """
    known = sorted(by_size.items())
    total: Any = tir.IntImm("int32", first + known[0][1])
    for (below, old), (_, new) in itertools.pairwise(known):
        if new != old:
            total = total + tir.Cast("int32", size > below) * (new - old)
    return total


def _signature(maker: Maker, variables: Mapping[str, Any]) -> Any:
    """A function of the kernel's parameters, with an empty body."""
    examples = []
    for at in ((2, 3, 5, 7), (3, 5, 2, 4), (5, 2, 3, 8), (4, 7, 11, 3)):
        sizes = {
            name: min(size, most or size)
            for (name, most), size in zip(maker.source.symbols.items(), itertools.cycle(at))
        }
        func = maker.example(sizes, None)
        assert func is not None
        examples.append(Example(sizes, func.func.with_body(tir.Evaluate(tir.const(0)))))
    found = learnt(examples)
    if found is None:
        raise _no_kernel(maker, "with these shapes")
    return found.function(variables)
