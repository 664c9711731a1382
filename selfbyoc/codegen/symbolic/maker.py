"""Schedules a kernel at some of its symbolic sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...errors import SelfbyocError, SymbolicError, reason
from ...graph import sizes_text
from ...language.decisions import deciding
from ...tvm.types import PrimFunc, Target
from ..external import External, match_of, packed_params
from ..plan import plan_of
from ..schedule import schedule_external, stacked_as, takes_own_compute
from .formula import Sizes
from .learn import Example
from .ranges import decisions_at

# Sizes of the other symbols, in examples. Three of them have several tiles of 8 or 16: of two a
# formula of another tile says the same.
OTHERS = (3, 2, 17, 5, 61, 38)
TRIED = (53, 98, 131, 64)  # sizes of the main symbol, until one has a kernel
LARGE = (1009, 1013, 1019, 1021)  # primes: what they divide has them for a factor
BORDERS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 49, 64, 65, 100, 128, 129, 192, 193, 513)


Fixed = Mapping[str, int | None]  # of the other symbols: 1, or (None) anything above


@dataclass(frozen=True)
class Maker:
    """Schedules a kernel at some sizes; remembers what it read and made at which."""

    source: External
    target: Target
    _read: dict[tuple[int, ...], External] = field(default_factory=dict, compare=False, repr=False)
    _alone: dict[tuple[int, ...], Example] = field(default_factory=dict, compare=False, repr=False)
    _decided: dict[Any, Example | None] = field(default_factory=dict, compare=False, repr=False)
    _alike: dict[Any, Sequence[int]] = field(default_factory=dict, compare=False, repr=False)

    def at(self, sizes: Sizes) -> External:
        """The function of these sizes."""
        key = tuple(sizes.values())
        if key not in self._read:
            self._read[key] = self.source.at(sizes)
        return self._read[key]

    def open(self, sizes: Sizes) -> set[int]:
        """The extents of these sizes that are open: the symbols', and those of inputs that are so
        many times one, as of queries that share keys; of one query they are known.
        """
        several = {n * sizes[name] for name, n in self._multiples if sizes[name] > 1}
        return {*sizes.values(), *several}

    @cached_property
    def _multiples(self) -> set[tuple[str, int]]:
        large = dict(zip(self.source.symbols, LARGE, strict=False))
        extents = {extent for value in self.at(large).graph.inputs for extent in value.shape}
        return {
            (name, extent // size)
            for extent, (name, size) in itertools.product(extents, large.items())
            if extent > size and extent % size == 0
        }

    def decided(self, sizes: Sizes) -> dict[str, int]:
        """What its plan decides for these sizes, that fits others too; tuning, for their range."""
        tuned = decisions_at(self.source, sizes)
        at = deciding(tuned, fitted=True, lasting=True, sizes=self.open(sizes))
        with at as asked, self.target:
            self._plan(self.at(sizes))
        return {**tuned, **asked.taken}

    def loss(self, sizes: Sizes, told: Mapping[str, int]) -> float | None:
        """How much longer it takes at these sizes decided so than as they are planned by
        themselves; None where its planner does not say.
        """
        at = deciding(told, fitted=True, lasting=True, sizes=self.open(sizes))
        with at as asked, self.target:
            self._plan(self.at(sizes))
        return asked.loss

    def try_once(self) -> None:
        """Schedule for the sizes at which the function is read: what raises there is a mistake, of
        whatever size.
        """
        self._scheduled(self.source.at(self.source.sizes))

    def alone(self, sizes: Sizes) -> Example:
        """The kernel of these sizes, decided as for them alone. Raises SymbolicError where its
        schedule does, as nobody asked for this size.
        """
        key = tuple(sizes.values())
        if key not in self._alone:
            self._alone[key] = self._made_alone(sizes)
        return self._alone[key]

    def _made_alone(self, sizes: Sizes) -> Example:
        try:
            tuned = decisions_at(self.source, sizes)
            with deciding(tuned, fitted=True, sizes=self.open(sizes)), self.target:
                return Example(sizes, _bare(self._scheduled(self.at(sizes))))
        except SelfbyocError as err:
            raise SymbolicError(f"at {sizes_text(sizes)}: {reason(err)}") from err

    def unscheduled(self, sizes: Sizes) -> PrimFunc:
        """The function of these sizes before it is scheduled. Raises SymbolicError where none can
        be made.
        """
        source = self.at(sizes)
        try:
            with deciding({}, fitted=True, sizes=self.open(sizes)), self.target:
                return _bare(stacked_as(source, self.target, None, is_noted=False).func)
        except SelfbyocError as err:
            raise SymbolicError(f"at {sizes_text(sizes)}: {reason(err)}") from err

    def example(self, sizes: Sizes, told: Mapping[str, int]) -> Example | None:
        """The kernel of these sizes, decided so; None where it cannot be, or decides otherwise."""
        key = tuple(sizes.values()), tuple(sorted(told.items()))
        if key not in self._decided:
            self._decided[key] = self._made(sizes, told)
        return self._decided[key]

    def _made(self, sizes: Sizes, told: Mapping[str, int]) -> Example | None:
        source = self.at(sizes)
        at = deciding(told, fitted=True, lasting=True, sizes=self.open(sizes))
        try:
            with at as asked, self.target:
                if told:
                    self._plan(source)
                    if not _fits(told, asked.taken):
                        return None
                return Example(sizes, _bare(self._scheduled(source)))
        except SelfbyocError:
            return None

    def cases(self, symbol: str) -> list[int | None]:
        """What a symbol beside the main one may be: 1, anything above (None)."""
        within = self.source.range_of(symbol)
        above = within.most is None or within.most > 1
        return [*([1] if within.holds(1) else []), *([None] if above else [])]

    def around(
        self, main: str, size: int, fixed: Fixed, others: Sequence[int] = OTHERS
    ) -> Iterator[Sizes]:
        """Sizes of all symbols, with this one of `main`; those of the others that are not fixed
        vary, for each size otherwise.
        """
        for shift in range(len(others) if None in fixed.values() else 1):
            found = {main: size}
            for place, (name, one) in enumerate(fixed.items()):
                found[name] = one or others[(size + shift + place * 2) % len(others)]
            yield {name: found[name] for name in self.source.symbols}

    def alike(self, main: str, told: Mapping[str, int], fixed: Fixed) -> Sequence[int]:
        """The sizes of another symbol whose kernels have the same loops, at one size of `main`:
        queries that fill whole tiles may have others, or those of one block. All where it is not
        one symbol that varies, or no two are alike.
        """
        if list(fixed.values()).count(None) != 1:
            return OTHERS
        key = main, tuple(fixed.items()), tuple(sorted(told.items()))
        if key not in self._alike:
            tried = (self._by_loops(main, size, told, fixed) for size in TRIED)
            groups: Any = next(filter(None, tried), [[]])
            most = max(groups, key=lambda sizes: (len(sizes), max(sizes, default=0)))
            self._alike[key] = most if len(most) > 1 else OTHERS
        return self._alike[key]

    def _by_loops(
        self, main: str, size: int, told: Mapping[str, int], fixed: Fixed
    ) -> list[list[int]]:
        """The sizes of another symbol by the loops that they have at one of `main`."""
        groups: dict[Any, list[int]] = {}
        for sizes in self.around(main, size, fixed):
            made = self.example(sizes, told)
            if made is not None:
                (other,) = (sizes[name] for name, one in fixed.items() if one is None)
                groups.setdefault(made.loops, []).append(other)
        return list(groups.values())

    def no_kernel(self, what: str) -> SymbolicError:
        """The error where the schedules of several sizes are not those of one kernel."""
        names = ", ".join(name.removeprefix("tefuse.") for name in self.source.composites)
        symbols = ", ".join(self.source.symbols)
        return SymbolicError(
            f"composite {names}: no kernel {what}, with {symbols} symbolic: its schedules for some "
            f"sizes differ in more than sizes"
        )

    def _plan(self, source: External) -> None:
        if takes_own_compute(source, self.target):
            packed = {p.arg: p.value.shape for p in packed_params(source).values()}
            plan_of(match_of(source), packed)

    def _scheduled(self, source: External) -> PrimFunc:
        return schedule_external(source, self.target, is_noted=False)[1].mod["main"]


def _fits(told: Mapping[str, int], taken: Mapping[str, int]) -> bool:
    return all(told.get(name, value) == value for name, value in taken.items())


def _bare(func: PrimFunc) -> PrimFunc:
    """A function without what we note on it: that is of its sizes."""
    for name in [str(n) for n in func.attrs.keys()]:  # noqa: SIM118 (no Python dict)
        if name in ("global_symbol", "Composite") or name.startswith("tefuse."):
            func = func.without_attr(name)
    return func


def border_sizes(source: External) -> Iterator[Sizes]:
    """Sizes on both sides of where another kernel or tile begins, those of its ranges; none without
    symbols.
    """
    if not source.symbols:
        return
    main, *others = reversed(list(source.symbols))
    found: list[Sizes] = []
    for number, size in enumerate(BORDERS):
        rest = dict.fromkeys(others, (1, 2, 9)[number % 3])
        sizes = {name: {main: size, **rest}[name] for name in source.symbols}
        inside = {name: source.range_of(name).nearest(size) for name, size in sizes.items()}
        found += [] if inside in found else [inside]
    yield from found
