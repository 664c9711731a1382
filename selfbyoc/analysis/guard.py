"""A guard that measures: a kernel stays if it is as fast as what would take its ops otherwise.

Otherwise means the same ops, alone, built with the other composites of the partitioning: some of
those may match, and the rest is TVM's (under our default schedule on Relax).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.target import host_target
from ..errors import InputError, LoweringError
from ..machine import host
from ..partition.refusal import SLOWER, Place, Refusal
from ..runtime.build import build
from ..runtime.library import Library
from ..runtime.timing import latency
from ..tvm.types import IRModule, Target
from .verify.generation import default_road
from .verify.inputs import arrays
from .verify.subjects import Subject, subjects

if TYPE_CHECKING:
    from ..language.composite import Composite
    from ..partition import Partitioning

WINDOWS, SECONDS = 15, 0.3  # of each of the two: the median of windows of 20 ms, in turns


@dataclass(frozen=True)
class Trial:
    """A match to be measured.

    composite  what matched
    mod        its ops as a module of their own, weights as constants
    target     what both are built for
    others     the composites that may take the ops instead
    inputs     seeded arrays for mod
    """

    composite: Composite
    mod: IRModule
    target: Target
    others: Sequence[Composite]  # what may take the ops instead
    inputs: Sequence[np.ndarray]


@dataclass(frozen=True)
class Times:
    """Milliseconds of a kernel, and of what would serve instead (inf: that cannot be built)."""

    kernel: float
    instead: float
    served_by: str = "TVM"

    def best(self, again: Times) -> Times:
        """Of two measurements the lower times: what disturbs can only add to one."""
        kernel, instead = min(self.kernel, again.kernel), min(self.instead, again.instead)
        return Times(kernel, instead, self.served_by)


def measured(trial: Trial) -> Times:
    """Build both on the public road and time their calls against each other."""
    kernel = build(trial.mod, trial.target, composites=[trial.composite])
    if kernel.report is not None and not kernel.report.counts:
        return Times(0.0, math.inf)  # alone, its ops are not what they were read as: it stays
    try:
        other = build(trial.mod, trial.target, composites=trial.others)
    except LoweringError:  # what TVM cannot build (QNN ops, one by one) is nothing to compare with
        return Times(0.0, math.inf)
    runs = {"kernel": _call(kernel, trial), "other": _call(other, trial)}
    found = latency(runs, WINDOWS, SECONDS)
    return Times(found["kernel"].milliseconds, found["other"].milliseconds, _served(other))


def _call(library: Library, trial: Trial) -> Callable[[], object]:
    return library.prepared(*trial.inputs)


def _served(library: Library) -> str:
    """The composites that took the ops, and TVM where some are left."""
    if library.report is None:
        return "TVM"
    names = list(library.report.counts)
    return " and ".join(names + ["TVM"] * bool(library.report.left or not names))


@dataclass
class MeasuredGuard:
    """For `partition_for_tefuse(guard=...)`: leaves out kernels that do not pay.

    A kernel is kept if it takes at most `limit` times as long: two runs of the same code differ by
    some percent. One that loses is measured once more, both built anew. `measure` gets a Trial and
    returns Times. Equal kernels are measured once, and the guard remembers them for as long as it
    lives: `times` has all of them, kept ones too.
    """

    limit: float = 1.05
    measure: Callable[[Trial], Times] = measured
    times: dict[Any, Times] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise InputError(f"limit: expected a factor above 0, found {self.limit}")

    def __call__(self, decided: Partitioning) -> dict[Place, Refusal]:
        """The places where a composite does not pay, with the two times."""
        target = decided.target or host_target()
        if why := host.cannot_run(target):
            raise InputError(f"guard: nothing can be measured: {why}")
        plain = decided.finish(pack=False)
        refused: dict[Place, Refusal] = {}
        for subject in subjects(plain, plain):
            composite = subject.kernel.composite
            times = self._times(subject, decided, target)
            if self._loses(times):
                for root in subject.roots:
                    refused[composite.name, root] = _slower(times, self.limit)
        return refused

    def _times(self, subject: Subject, decided: Partitioning, target: Target) -> Times:
        composite = subject.kernel.composite
        others = [c for c in decided.registry if c is not composite]
        key = (subject.key, str(target), tuple(c.name for c in others))
        if key not in self.times:
            given = arrays(subject.graph, subject.constants, "random")
            mod, positions = default_road.subgraph(subject.function, subject.constants)
            inputs = [given[i] for i in positions]
            trial = Trial(composite, mod, target, others, inputs)
            found = self.measure(trial)
            self.times[key] = found.best(self.measure(trial)) if self._loses(found) else found
        return self.times[key]

    def _loses(self, times: Times) -> bool:
        return times.kernel > self.limit * times.instead


def _slower(times: Times, limit: float) -> Refusal:
    """The record of it: what was wanted is the time of what serves instead."""
    allowed = f"at most {limit:g} x {times.instead:.4f} ms, which {times.served_by} takes"
    found = f"{times.kernel:.4f} ms"
    return Refusal(SLOWER, f"it takes {found}; wanted {allowed}", wanted=allowed, found=found)
