"""One external function, scheduled for a target as its attributes say."""

from __future__ import annotations

from dataclasses import replace

from ..common.upper import upper
from ..errors import ComputeError
from ..machine import LEAST
from ..tvm.types import Schedule, Target
from .apply import Scheduled, apply_schedule
from .attributes import PACKED
from .external import NOT_OWN, External, is_for, match_of, packed_params, takes_plain_ops
from .info.ops import Ops
from .stack import Stacked, stack
from .tuning_record import Tuned, told_by


def default_schedule(sch: Schedule, ops: Ops | None, target: Target, told: str = "") -> str:
    """The schedule of a function whose composite has none -> what was planned."""
    return str(upper("schedules.default:schedule")(sch, ops, target, told))


def schedule_external(
    external: External, target: Target, *, is_noted: bool = True
) -> tuple[Stacked, Scheduled]:
    """External function -> stacked function and its scheduled form. `is_noted`: whether they get op
    info; the composite's own schedule does so in any case, if it may ask for it.
    """
    tuned = Tuned.of(external.attrs)
    told = external.attrs.get(NOT_OWN, "")
    with target, told_by(tuned):  # a compute may ask for both (machine.py, choose)
        stacked = stacked_as(external, target, tuned, is_noted=is_noted)
        return stacked, apply_schedule(stacked, target, default_schedule, told, tuned)


def stacked_as(
    external: External, target: Target, tuned: Tuned | None, *, is_noted: bool = True
) -> Stacked:
    """The stacked function; for a trace that of the plain ops, where they have a schedule of ours:
    what the composite computes otherwise was written for that schedule. So is what a kernel
    computes, but weights that came packed nobody else can read.
    """
    match, packed = match_of(external), packed_params(external)
    if not takes_own_compute(external, target) or takes_plain_ops(match.composite, target, tuned):
        bare = replace(match.composite, kernel=None, compute=None, pack={})
        match = replace(match, composite=bare)
    is_noted = is_noted or match.composite.kernel is None
    try:
        return stack(external.graph, match, packed, is_noted=is_noted)
    except ComputeError:
        if NOT_OWN not in external.attrs or not packed or match.composite.kernel is None:
            raise
        # The default schedule needs no plan of this machine, only a compute that reads them.
        return stack(external.graph, match, packed, LEAST)


def takes_own_compute(external: External, target: Target) -> bool:
    """Whether the composite's compute serves, by its kernel's plan if it has one; else its ops are
    stacked one by one.
    """
    composite = match_of(external).composite
    is_own = NOT_OWN not in external.attrs and is_for(composite, target)
    return composite.kernel is None or is_own or bool(external.attrs.get(PACKED))
