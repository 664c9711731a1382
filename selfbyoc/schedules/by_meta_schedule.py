"""A schedule made of MetaSchedule's rules, which the tuner searches: of a user's, or TVM's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..codegen.info.ops import Ops
from ..errors import ScheduleError
from ..tvm.types import Schedule, ScheduleRule, Target

__all__ = ["ByMetaSchedule", "by_meta_schedule"]


def by_meta_schedule(*rules: ScheduleRule) -> ByMetaSchedule:
    """A schedule for `Composite(schedule=...)` that MetaSchedule's rules make, one after the other
    at each block.

    A rule is a `PyScheduleRule` of yours, with `derived_object` or without, or one of MetaSchedule.
    What it samples is searched by `tune`; a build without records takes its `decision=`, or where
    it gives none, what is drawn with a fixed seed. `op_info(sch)` gives it the ops. Raises
    ScheduleError while scheduling, for what is no rule, and for one that raises.
    """
    if not rules:
        raise ScheduleError("by_meta_schedule: expected a rule of MetaSchedule, found none")
    return ByMetaSchedule(rules)


@dataclass(frozen=True)
class ByMetaSchedule:
    """What `by_meta_schedule` returns."""

    rules: Sequence[Any]

    def __call__(self, sch: Schedule, ops: Ops, target: Target) -> None:
        from .meta_rules import scheduled  # MetaSchedule needs packages that a build does not

        scheduled(sch, self.rules, target)
