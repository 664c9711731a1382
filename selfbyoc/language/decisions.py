"""What a composite leaves open: a choice among candidates, with the hand-picked one as default.

`choose` may stand in a compute, a pack or a schedule. A build takes the default; the tuner runs the
same functions with other decisions. So the hand schedule and the search space are one function, in
plain Python: what is chosen may decide which loops there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import DecisionError, ScheduleError
from ..tvm.types import Attr, Attrs

T = TypeVar("T")

UNKNOWN_LOSS = 1.03  # by what is not the default, where nobody says how long that takes


@dataclass(frozen=True)
class Choice:
    """One decision that was asked for: among what, the default, what was taken, and how much longer
    than by the default that takes, if the planner says so.
    """

    candidates: tuple[Any, ...]
    default: Any
    taken: Any
    loss: float | None = None


@dataclass
class Decisions:
    """What is told by name; and, by running the composite's functions, what they asked for."""

    told: Attrs = field(default_factory=dict)
    made: dict[str, Choice] = field(default_factory=dict)
    fitted: bool = False  # what is told and does not fit gives way to the default
    lasting: bool = False  # only values that fit every size are taken, where they are known
    sizes: frozenset[int] = frozenset()  # of symbols, at which something is scheduled

    def take(
        self,
        name: str,
        candidates: tuple[T, ...],
        default: T,
        lasting: tuple[T, ...] = (),
        time: Callable[[T], float] | None = None,
    ) -> T:
        """The value that is told for a name, or the default; the same for every question."""
        if self.lasting and lasting:
            default = default if default in lasting else lasting[0]
            candidates = lasting
        known = self.made.get(name)
        if known is not None and (known.candidates, known.default) != (candidates, default):
            raise ScheduleError(
                f"choose: {name!r} is asked for twice, among {known.candidates} with default "
                f"{known.default!r} and among {candidates} with default {default!r}"
            )
        taken = self.told.get(name, default)
        if taken not in candidates and self.fitted:
            taken = default
        elif taken not in candidates:
            raise DecisionError(f"{name!r} was given {taken!r}; expected one of {candidates}")
        if known is None:
            loss = None if time is None else time(taken) / time(default)
            self.made[name] = Choice(candidates, default, taken, loss)
        return taken

    @property
    def taken(self) -> dict[str, Attr]:
        """The decisions made, by name."""
        return {name: choice.taken for name, choice in self.made.items()}

    @property
    def loss(self) -> float | None:
        """How much longer than with all defaults it takes; None where no planner says that."""
        known = [choice.loss for choice in self.made.values() if choice.loss is not None]
        others = (c for c in self.made.values() if c.loss is None and c.taken != c.default)
        return math.prod(known) * UNKNOWN_LOSS ** len([*others]) if known else None

    def check_all_asked(self) -> None:
        """Raise DecisionError for what was told and never asked for."""
        unknown = sorted(set(self.told) - set(self.made))
        if unknown and not self.fitted:
            raise DecisionError(f"{unknown} were given; the composite asks for {sorted(self.made)}")


_current: ContextVar[Decisions | None] = ContextVar("selfbyoc_decisions", default=None)


@contextmanager
def deciding(
    told: Attrs | None = None,
    *,
    fitted: bool = False,
    lasting: bool = False,
    sizes: Collection[int] = (),
) -> Iterator[Decisions]:
    """Pack, stack and schedule with these decisions; -> what is asked for meanwhile.

    Where the same ones are in force already, their questions go on being collected there. `fitted`:
    what does not fit gives way to the default, as the tuner's guesses may not. `lasting`: where it
    is known which values fit every size, only those are taken; `sizes` are those at hand.
    """
    known = _current.get()
    same = known is not None and known.told == dict(told or {})
    made = Decisions(dict(told or {}), {}, fitted, lasting, frozenset(sizes))
    decisions = known if known is not None and same else made
    token = _current.set(decisions)
    try:
        yield decisions
    finally:
        _current.reset(token)


def for_every_size_of(sizes: Collection[int]) -> AbstractContextManager[Decisions | None]:
    """Decide what fits every size of symbols that have these ones; as usual if there are none."""
    return deciding({}, fitted=True, lasting=True, sizes=sizes) if sizes else nullcontext()


@contextmanager
def undecided() -> Iterator[None]:
    """Run functions of a composite with their defaults; nobody collects what they ask for."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def for_every_size() -> bool:
    """Whether what is decided now has to fit every size of a symbolic axis, not only the one at
    hand.
    """
    decisions = _current.get()
    return decisions is not None and decisions.lasting


def is_open(extent: int) -> bool:
    """Whether an extent is that of a symbol, as far as numbers say: of a kernel for every size, or
    of one beside it for a size alone.
    """
    decisions = _current.get()
    return decisions is not None and extent in decisions.sizes


def is_symbolic(extent: int) -> bool:
    """Whether an extent is that of a symbol, as far as numbers say: of what it can be divided by
    follows nothing for other sizes.
    """
    return for_every_size() and is_open(extent)


def choose(
    name: str,
    candidates: Sequence[T],
    default: T,
    lasting: Sequence[T] = (),
    time: Callable[[T], float] | None = None,
) -> T:
    """One of `candidates`: `default`, unless the tuner or a record decides otherwise.

    `name` is unique within the composite's function; asked twice with the same candidates, it gets
    the same answer. `lasting` are values that fit every size, for kernels of symbolic sizes, the
    best first; without any, the candidates are asked about size by size. `time` says how long it
    takes with one, in whatever unit: such a kernel has a function for each plan without which its
    sizes lose. Raises ScheduleError if `default` is none of the candidates.
    """
    offered = tuple(candidates)
    if default not in offered:
        raise ScheduleError(f"choose: {name!r} has default {default!r}; expected one of {offered}")
    decisions = _current.get()
    if decisions is None:
        return default
    if len(offered) == 1 and not decisions.lasting:  # no decision
        return default
    return decisions.take(name, offered, default, tuple(lasting), time)
