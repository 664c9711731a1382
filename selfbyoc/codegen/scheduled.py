"""One external function, scheduled for a target as its attributes say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..wiring import wired
from .apply import Scheduled, apply_schedule
from .external import NOT_OWN, External, is_for, match_of, packed_params, takes_plain_ops
from .stack import Stacked, stack
from .told import PACKED
from .tuned import Tuned, told_by


def schedule_external(external: External, target: Any) -> tuple[Stacked, Scheduled]:
    """External function -> stacked function and its scheduled form."""
    tuned = Tuned.of(external.attrs)
    told = external.attrs.get(NOT_OWN, "")
    with target, told_by(tuned):  # a compute may ask for both (machine.py, choose)
        stacked = stacked_as(external, target, tuned)
        return stacked, apply_schedule(stacked, target, wired.default_schedule, told, tuned)


def stacked_as(external: External, target: Any, tuned: Tuned | None) -> Stacked:
    """The stacked function; for a trace that of the plain ops, where they have a schedule of ours:
    what the composite computes otherwise was written for that schedule. So is what a kernel
    computes, but weights that came packed nobody else can read.
    """
    match = match_of(external)
    may = match.composite.kernel is not None and not external.attrs.get(PACKED)
    plain = may and (NOT_OWN in external.attrs or not is_for(match.composite, target))
    if plain or takes_plain_ops(match.composite, target, tuned):
        bare = replace(match.composite, kernel=None, compute=None, pack={})
        match = replace(match, composite=bare)
    return stack(external.graph, match, packed_params(external))
