"""Partitioning that keeps only kernels that were verified: a wrong one goes down a level."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...codegen.apply import OWN, TUNED
from ...codegen.external import NOT_OWN
from ...codegen.records.lookup import bar
from ...errors import SelfbyocError, VerificationError, VerificationWarning
from ...language.known import Composites, listed
from ...partition import Partitioning, is_partitioned, partitioning
from ...partition.generation import ir
from ...partition.refusal import VERIFIED, Place, Refusal
from ...tvm.types import IRModule, NDArray, Target
from .checks import TIMEOUT, Plan
from .records import REFUSED, Check, Verdict, Verification
from .subjects import Subject, subjects
from .verification import check_timeout, run

if TYPE_CHECKING:
    from ...language.composite import Composite

SCHEDULES = {TUNED: "a tuned schedule", OWN: "its own schedule"}  # below is the default schedule
NEXT = "the next composite that matches, or TVM"


@dataclass(frozen=True)
class Disabled:
    """What verification took out of a build, and what serves instead."""

    composite: str
    roots: tuple[str, ...]
    level: str  # own schedule, or default schedule: then the composite is not taken at all
    check: Check
    instead: str

    @property
    def reason(self) -> str:
        """For reports and warnings."""
        schedule = SCHEDULES.get(self.level, "the default schedule")
        return f"verification found it wrong on {schedule}: {self.check}"

    def __str__(self) -> str:
        where = ", ".join(self.roots)
        return f"composite {self.composite} at {where}: {self.reason}; instead: {self.instead}"


@dataclass(frozen=True)
class Verified:
    """A partitioned module, what is known of its kernels, and what was disabled on the way."""

    mod: IRModule
    verification: Verification
    disabled: tuple[Disabled, ...]


@dataclass
class _State:
    """What is decided so far."""

    plan: Plan
    refused: dict[Place, Refusal] = field(default_factory=dict)
    verdicts: dict[Any, Verdict] = field(default_factory=dict)
    told: dict[Any, str] = field(default_factory=dict)  # kernel -> why not its own schedule
    is_fixed: bool = False  # partitioned before
    barred: int = 0  # tuning records that are no longer used
    disabled: list[Disabled] = field(default_factory=list)

    def disable(self, subject: Subject, verdict: Verdict, instead: str) -> Disabled:
        """Record it and warn."""
        check = verdict.failures[0]
        found = Disabled(verdict.composite, subject.roots, verdict.level, check, instead)
        self.disabled.append(found)
        warnings.warn(VerificationWarning(str(found)), stacklevel=5)
        return found


def verified(
    mod: IRModule,
    params: Mapping[str, NDArray] | None,
    target: Target,
    composites: Composites,
    timeout: float = TIMEOUT,
    refused: Mapping[Place, Refusal] | None = None,
) -> Verified:
    """Partition; verify each kernel as it will be used; go down a level where it fails.

    tuned record -> own schedule -> default schedule -> the composite is not taken there, and the
    ops are anybody else's. Terminates: each round refuses at least one composite at one more root,
    or one more record. `refused` is what a guard has left out before.
    """
    state = _State(Plan(target, timeout=check_timeout(timeout)), dict(refused or {}))
    state.is_fixed = is_partitioned(mod)
    composites = listed(composites)
    while True:
        before = len(state.refused), state.barred
        done, plain = _partitioned(mod, params, target, composites, state)
        what = subjects(done, plain)
        wrong = _judge(what, state)
        if (len(state.refused), state.barred) == before:
            break
        if state.is_fixed:
            raise VerificationError(
                f"{wrong[0]}; mod was partitioned before, so nothing else can take these ops: "
                f"hand build the unpartitioned module"
            )
    _warn_unverified(what, state)
    found = Verification(tuple(state.verdicts[s.key] for s in what), str(target), 0)
    return Verified(_with_levels(done, what, state), found, tuple(state.disabled))


def _partitioned(
    mod: IRModule,
    params: Mapping[str, NDArray] | None,
    target: Target,
    composites: list[Composite] | None,
    state: _State,
) -> tuple[IRModule, IRModule | None]:
    if is_partitioned(mod):
        return mod, None
    decided = partitioning(mod, params, target, composites, state.refused)
    plain = decided.finish(pack=False)
    return _packed(decided, plain, state), plain


def _packed(decided: Partitioning, plain: IRModule, state: _State) -> IRModule:
    """With packed weights; where a `pack` raises, without: its kernel then fails by name."""
    try:
        return decided.finish(pack=True)
    except SelfbyocError:
        if not _judge(subjects(plain, plain), state):
            raise
        return plain


def _judge(what: Sequence[Subject], state: _State) -> list[Disabled]:
    """Verify what is new; -> the composites that must not be taken where they are."""
    new = [s for s in what if s.key not in state.verdicts]
    wrong = [(s, v) for s, v in _verdicts(new, state) if v.failures]
    wrong = [(s, v) for s, v in wrong if not _bar_record(s, v, state)]
    again = [(s, v) for s, v in wrong if v.level in SCHEDULES]
    for subject, verdict in again:
        state.told[subject.key] = state.disable(subject, verdict, "the default schedule").reason
    below = [(s, v) for s, v in wrong if v.level not in SCHEDULES]
    told = [s.told(state.told[s.key]) for s, _ in again]
    for (subject, _), (_, verdict) in zip(again, _verdicts(told, state), strict=True):
        state.verdicts[subject.key] = verdict
        below += [(subject, verdict)] if verdict.failures else []
    return [_refuse(subject, verdict, state) for subject, verdict in below]


def _bar_record(subject: Subject, verdict: Verdict, state: _State) -> bool:
    """Partition again without a tuning record, where it was partitioning that took it."""
    if verdict.level != TUNED or state.is_fixed or not bar(subject.kernel.source):
        return False
    state.disable(subject, verdict, "what serves without the record")
    state.barred += 1
    return True


def _verdicts(what: Sequence[Subject], state: _State) -> list[tuple[Subject, Verdict]]:
    found = list(zip(what, run(what, state.plan, isolate=True), strict=True))
    state.verdicts.update({subject.key: verdict for subject, verdict in found})
    return found


def _refuse(subject: Subject, verdict: Verdict, state: _State) -> Disabled:
    found = state.disable(subject, verdict, NEXT)
    for root in subject.roots:
        state.refused[verdict.composite, root] = Refusal(VERIFIED, found.reason)
    return found


def _warn_unverified(what: Sequence[Subject], state: _State) -> None:
    """Kernels that cannot be run or compared here are built all the same: say so, once."""
    unknown = [v for v in (state.verdicts[s.key] for s in what) if v.status == REFUSED]
    if unknown:
        text = f"{len(unknown)} of {len(what)} kernels are not verified: {unknown[0].notes[0]}"
        warnings.warn(VerificationWarning(text), stacklevel=4)


def _with_levels(mod: IRModule, what: Sequence[Subject], state: _State) -> IRModule:
    """The module whose hook does not take the schedules that were found wrong."""
    reasons = {s.kernel.symbol: state.told[s.key] for s in what if s.key in state.told}
    external = ir.external_functions(mod)
    told = {
        name: func.with_attr(NOT_OWN, json.dumps(reasons[symbol]))
        for name, func in external.items()
        if (symbol := str(func.attrs["global_symbol"])) in reasons
    }
    return ir.update(mod, told, {}) if told else mod
