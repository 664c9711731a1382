"""What a build is at, for whoever watches it: how many kernels there are, and how many are done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ..common.parts import begins
from ..tvm.types import Module, Target
from .cache.kernels import current
from .external import External
from .fallback import or_default
from .lower import inputs_key, lower
from .parallel import at_once


@dataclass(frozen=True)
class Work:
    """The kernels of a build, before the first of them is made; what is neither learnt nor compiled
    is in the cache.
    """

    kernels: int
    learnt: tuple[str, ...] = ()  # for open sizes: the composite of each
    of_several: frozenset[str] = frozenset()  # of these the composites with more than one size
    compiled: int = 0  # of fixed sizes


class Watcher(Protocol):
    """Who watches; kernels are done in several threads."""

    def begun(self, work: Work) -> None:
        """What there is to do."""

    def done(self) -> None:
        """One more kernel is there."""


_watcher: ContextVar[Watcher | None] = ContextVar("selfbyoc_watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell this one of the builds inside."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def is_watched() -> bool:
    """Whether it is worth finding out what there is to do."""
    return _watcher.get() is not None


def begin(sources: Sequence[External], target: Target) -> None:
    """Tell which kernels a build is about to make."""
    if (watcher := _watcher.get()) is None:
        return
    cache = current() if str(target.kind) == "llvm" else None
    new = [
        source
        for source in sources
        if cache is None or cache.key_of(inputs_key(source, target)) is None
    ]
    named = [(s.composites[0].removeprefix("tefuse."), len(s.symbols)) for s in new if s.symbols]
    learnt, several = tuple(n for n, _ in named), frozenset(n for n, count in named if count > 1)
    watcher.begun(Work(len(sources), learnt, several, len(new) - len(learnt)))


def made(source: External, target: Target) -> Module:
    """The module of one kernel; that it is done is told."""
    module = or_default(lower, source, target)
    if (watcher := _watcher.get()) is not None:
        watcher.done()
    return module


def all_made(kernels: Sequence[tuple[External, Target]]) -> list[Module]:
    """The modules of kernels, several at once."""
    jobs = [partial(made, source, target) for source, target in kernels]
    begins("compiling kernels")
    modules = at_once(jobs, length=lambda place: _length(kernels[place][0]))
    begins("compiling what is between them")
    return modules


def _length(source: External) -> int:
    """About how much there is to do for a kernel; of open sizes it has a dozen functions."""
    return len(source.graph.ops) * (12 if source.symbols else 1)
