"""Memory that one thread of a block writes and another one uses, with no barrier between.

TVM sees to barriers, but takes memory for a thread's own wherever the last thread axis occurs in
the index; of `if threadIdx.x == 0: shared[threadIdx.y] = ...` it is not. A compiler for a CPU runs
the threads of a block in order, and such a kernel computes right there; a GPU does not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tir.lanes import lanes_of
from ...tvm.types import PrimExpr, PrimVar
from ...tvm.values import evaluated
from ..bounds.accesses import Access, Loop
from ..bounds.enumerate import extents, is_plain, used_by
from .walk import BARRIER, Device, scope
from .warps import Threads, first_of, some

_MOST = 1 << 10  # turns of an access's loops that are all looked at; of more, some of each loop
_Fixed = Mapping[Any, int]  # turns of loops, by their variables


@dataclass(frozen=True)
class _Path:
    """From one access to another that meets no barrier: in the same turn of some loops, and in the
    next one of the loop `around` that it takes.
    """

    one: int
    other: int
    same: tuple[Loop, ...]
    around: Loop | None = None


@dataclass(frozen=True)
class _Touched:
    """Elements, each with the first and the last thread that comes to it."""

    at: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def meets(self, other: _Touched) -> bool:
        """Whether two threads come to one element."""
        _, a, b = np.intersect1d(self.at, other.at, assume_unique=True, return_indices=True)
        alone = (self.low[a] == other.high[b]) & (self.high[a] == other.low[b])
        return not alone.all()


def races(found: Device, of: Threads) -> Iterator[str]:
    """What is wrong, by pairs of accesses. Raises Unknown where a loop is not bounded."""
    look = _Look(found, of)
    told = {
        _text(found.accesses[one], found.accesses[other])
        for one, other in look.pairs()
        if any(look.meet(path) for path in look.paths(one, other))
    }
    yield from sorted(told)


def _text(one: Access, other: Access) -> str:
    a, b = (f"[{each.raw}] is {'written' if each.is_store else 'read'}" for each in (one, other))
    return f"{one.root.name}{a} by one thread and {b} by another, with no barrier between"


class _Look:
    """The accesses of a device function in their order, by number."""

    def __init__(self, found: Device, of: Threads) -> None:
        self.accesses, self.of = found.accesses, of
        self.barriers = [sync for sync in found.syncs if sync.kind == BARRIER]
        self.blocks = {x.var: 0 for x in found.threads.values() if x.var not in of.env}
        self.known: dict[Any, _Touched] = {}

    def pairs(self) -> Iterator[tuple[int, int]]:
        """A store and what else touches its memory; threads that store by the same statement are
        taken to store the same. What is stored where data says is not looked at.
        """
        by_root: dict[Any, list[int]] = {}
        for n, access in enumerate(self.accesses):
            if scope(access) in ("shared", "global") and not access.open:
                by_root.setdefault(access.root, []).append(n)
        for numbers in by_root.values():
            stores = {n for n in numbers if self.accesses[n].is_store}
            for store, other in itertools.product(sorted(stores), numbers):
                if other not in stores or other > store:
                    yield min(store, other), max(store, other)

    def paths(self, one: int, other: int) -> Iterator[_Path]:
        """All between two accesses that meet no barrier."""
        common = self._common(one, other)
        if not any(one < barrier.number <= other for barrier in self.barriers):
            yield _Path(one, other, common)
        for n, loop in enumerate(common):
            inside = self._barriers_in(loop)
            for a, b in ((one, other), (other, one)):
                if not any(number > a or number <= b for number in inside):
                    yield _Path(a, b, common[:n], loop)

    def meet(self, path: _Path) -> bool:
        """Whether different threads come to the same element."""
        return any(self._touched(path.one, a).meets(self._touched(path.other, b))
                   for a, b in self._turns(path))  # fmt: skip

    def _turns(self, path: _Path) -> Iterator[tuple[_Fixed, _Fixed]]:
        """Of the loops around both accesses, some."""
        sizes = extents(self.accesses[path.one].loops) | extents(self.accesses[path.other].loops)
        same = [sorted({0, sizes[loop.var] - 1}) for loop in path.same]
        one, other = self._edges(path, sizes)
        for turns in itertools.product(*same):
            at = {loop.var: turn for loop, turn in zip(path.same, turns, strict=True)}
            if path.around is None or not self._barriers_in(path.around):
                yield one | at, other | at
                continue
            for turn in {0, sizes[path.around.var] - 2} - {-1}:
                step = path.around.var
                yield one | at | {step: turn}, other | at | {step: turn + 1}

    def _edges(self, path: _Path, sizes: _Fixed) -> tuple[dict[PrimVar, int], dict[PrimVar, int]]:
        """Turns of loops that have barriers: the first access is in the last one, and the other in
        the first.
        """
        one = {x.var: sizes[x.var] - 1 for x in self._own(path.one) if self._barriers_in(x)}
        return one, {x.var: 0 for x in self._own(path.other) if self._barriers_in(x)}

    def _barriers_in(self, loop: Loop) -> list[int]:
        return [barrier.number for barrier in self.barriers if loop in barrier.place.loops]

    def _own(self, number: int) -> list[Loop]:
        """The loops around an access that each thread goes through."""
        loops = self.accesses[number].loops
        return [x for x in loops if x.var not in self.of.env and x.var not in self.blocks]

    def _common(self, one: int, other: int) -> tuple[Loop, ...]:
        pairs = zip(self._own(one), self._own(other), strict=False)
        return tuple(a for a, _ in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs))

    def _touched(self, number: int, fixed: _Fixed) -> _Touched:
        access = self.accesses[number]
        guards = [g for g in access.guards if lanes_of(g) == 1 and is_plain(g)]
        used = used_by(access.index, guards, access.loops)
        fixed = {var: turn for var, turn in {**self.blocks, **fixed}.items() if var in used}
        key = (number, *sorted((str(var), turn) for var, turn in fixed.items()))
        if key not in self.known:
            free = [x for x in self._own(number) if x.var in used and x.var not in fixed]
            self.known[key] = self._all(access, guards, fixed, free)
        return self.known[key]

    def _all(
        self, access: Access, guards: list[PrimExpr], fixed: _Fixed, free: list[Loop]
    ) -> _Touched:
        sizes = extents(access.loops)
        every: list[Any] = [range(sizes[loop.var]) for loop in free]
        if np.prod([len(turns) for turns in every], dtype=float) > _MOST:
            every = [some(len(turns)) for turns in every]
        turns = list(itertools.product(*every))
        steps = np.array(turns, "int64").reshape(len(turns), len(free))
        env: dict[Any, Any] = {**self.of.env, **fixed}
        active = self.of.is_there
        for loop, step in zip(free, steps.T[:, :, None, None], strict=True):
            env[loop.var] = step + evaluated(loop.first, env)
            active = active & (step < evaluated(loop.extent, env))
        for guard in guards:
            active = active & np.asarray(evaluated(guard, env), bool)
        shape = (len(steps), *self.of.is_there.shape)
        active = np.broadcast_to(active, shape)
        thread = np.broadcast_to(np.arange(active[0].size).reshape(shape[1:]), shape)[active]
        at = np.broadcast_to(evaluated(first_of(access.index), env), shape)[active]
        at = np.add.outer(np.arange(lanes_of(access.index)), at).ravel()
        thread = np.tile(thread, lanes_of(access.index))
        elements, which = np.unique(at, return_inverse=True)
        low = np.full(len(elements), active.size)
        high = np.full(len(elements), -1)
        np.minimum.at(low, which, thread)
        np.maximum.at(high, which, thread)
        return _Touched(elements, low, high)
