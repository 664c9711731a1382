"""MetaSchedule's generator with given rules, on a function that we schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ScheduleError, SelfbyocError, one_line
from ..language.decisions import choose
from ..language.sampling import replay
from ..tvm import Schedule
from ..tvm.tune import callbacks, derived, meta_schedule, tune_context
from ..tvm.types import Block, IRModule, ScheduleRule, Target, TuneContext

ms = meta_schedule()

_SEED = 1  # of what rules sample without a decision: a build is the same each time


def scheduled(sch: Schedule, rules: Sequence[ScheduleRule], target: Target) -> None:
    """Do to a schedule what the rules do; what they leave open asks `choose`."""
    with callbacks() as kept:
        context = _context([Asked(_rule(rule), kept) for rule in rules], sch.mod, target)
        spaces = list(context.generate_design_space())
    if not spaces:
        names = ", ".join(map(_name, rules))
        raise ScheduleError(f"by_meta_schedule: {names}: expected a schedule, found none")
    taken = choose("design space", range(len(spaces)), default=0)
    replay(spaces[taken].trace, sch)
    for step in context.space_generator.postprocs:
        step.apply(sch)


def _context(rules: Sequence[ScheduleRule], mod: IRModule, target: Target) -> TuneContext:
    # Annotations of TVM's rule for parallel loops become such loops. No RewriteReductionBlock: it
    # makes some sums wrong (docs/makers/tvm-notes.md).
    generator = ms.space_generator.PostOrderApply(
        sch_rules=list(rules),
        postprocs=[ms.postproc.RewriteParallelVectorizeUnroll()],
        mutator_probs={},
    )
    return tune_context(
        mod=mod,
        target=target,
        space_generator=generator,
        search_strategy="replay-trace",
        rand_state=_SEED,
        num_threads=1,
    )


@derived
class Asked(ms.schedule_rule.PyScheduleRule):  # type: ignore[name-defined]
    """A rule whose answers are looked at before TVM sees them: of a None, 0.17 dies."""

    def __init__(self, rule: ScheduleRule, kept: Callable[..., Any]) -> None:
        super().__init__()
        self.rule, self.kept = rule, kept

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        self.kept(_asked)(self.rule, "_initialize_with_tune_context", context)

    def apply(self, sch: Schedule, block: Block) -> list[Schedule]:
        return self.kept(_applied)(self.rule, sch, block)


def _applied(rule: ScheduleRule, sch: Schedule, block: Block) -> list[Schedule]:
    found = _asked(rule, "apply", sch, block)
    is_list = hasattr(found, "__getitem__")  # 0.17's arrays have no __iter__
    if not is_list or not all(isinstance(made, Schedule) for made in found):
        text = f"apply: expected a list of schedules, found {found!r}"
        raise ScheduleError(f"by_meta_schedule: {_name(rule)}: {text}")
    return list(found)


def _asked(rule: ScheduleRule, method: str, *args: TuneContext | Schedule | Block) -> Any:
    try:
        return getattr(rule, method)(*args)
    except SelfbyocError:  # of a `choose` in it
        raise
    except Exception as err:  # whatever a rule raises
        raise ScheduleError(f"by_meta_schedule: {_name(rule)} raised {one_line(err)}") from err


def _rule(given: object) -> ScheduleRule:
    """What to ask; of a derived object, the Python object in it, whose errors come as they are."""
    kinds = (ms.schedule_rule.ScheduleRule, ms.schedule_rule.PyScheduleRule)
    if not isinstance(given, kinds):
        text = f"expected a rule of MetaSchedule, or a PyScheduleRule, found {given!r}"
        raise ScheduleError(f"by_meta_schedule: {text}")
    return getattr(given, "_inst", given)


def _name(rule: ScheduleRule) -> str:
    return type(getattr(rule, "_inst", rule)).__name__
