"""Stacked -> scheduled IRModule: what tuning found, the composite's own schedule, or the default
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import DecisionError, ScheduleError, SelfbyocError, did_you_mean, one_line
from ..language.raised import cause, in_words
from ..language.sampling import SamplingSchedule
from ..language.te_schedule import NOW, is_te_schedule, raised_in_te
from ..tvm import Schedule, get_block, tvm
from ..tvm.tune import apply_trace
from ..tvm.types import Block, Target, Trace
from .info.accesses import blocks_of
from .info.op_info import resealed
from .info.ops import Ops
from .roles import located
from .stack import Stacked
from .tuning_record import Tuned

if TYPE_CHECKING:
    from ..language.composite import Composite

TUNED, OWN, DEFAULT = "tuned record", "own schedule", "default schedule"


@dataclass(frozen=True)
class Level:
    """Which schedule a kernel takes, why that one, and the plan that it follows, if it has one."""

    name: str
    reason: str
    plan: str = ""


@dataclass(frozen=True)
class Scheduled:
    """A scheduled function `main` in a module, and which level its schedule came from."""

    mod: tvm.IRModule
    level: Level


def level_of(
    composite: Composite, target: Target, told: str = "", tuned: Tuned | None = None
) -> Level:
    """The one place that decides it. `told` is why the composite's own schedule must not be used,
    if so.
    """
    kind = str(target.kind)
    if tuned is not None and not told:
        return Level(TUNED, tuned.reason)
    if composite.schedule is None:
        return Level(DEFAULT, f"composite {composite.name} has no schedule of its own")
    if composite.schedule_for(kind) is None:
        assert isinstance(composite.schedule, Mapping)
        known = ", ".join(sorted(composite.schedule))
        _check_kinds(composite.name, composite.schedule, kind)
        return Level(DEFAULT, f"composite {composite.name} has a schedule for {known}, not {kind}")
    if told:
        return Level(DEFAULT, told)
    return Level(OWN, f"composite {composite.name} has a schedule for {kind}")


def _check_kinds(composite: str, named: Iterable[str], kind: str) -> None:
    """A schedule for a target that does not exist was to serve for this one."""
    known = [str(name) for name in tvm.target.Target.list_kinds()]
    for name in sorted(set(named) - set(known)):
        raise ScheduleError(
            f"composite {composite}: its schedule is for {name!r}, which is no kind of "
            f"target, and there is none for {kind}{did_you_mean(name, known)}"
        )


def apply_schedule(
    stacked: Stacked,
    target: Target,
    default: Callable[..., str],
    told: str = "",
    tuned: Tuned | None = None,
) -> Scheduled:
    """The user asked for the composite's schedule: if it raises, that is an error and no
    fallback. The decisions of `tuned` are in force already: the compute may have asked for some.
    """
    # Kept while scheduling: TVM changes in place a function that only the schedule holds, and then
    # the loops that it shares with the stacked one.
    begin = tvm.IRModule({"main": stacked.func.with_attr("global_symbol", "main")})
    sch = SamplingSchedule(begin)
    ops = Ops(stacked.ops, lambda name: _block(sch, name))
    level = level_of(stacked.composite, target, told, tuned)
    if stacked.plan is not None:
        level = replace(level, plan=str(stacked.plan))
    own = stacked.composite.schedule_for(str(target.kind))
    if level.name == TUNED and tuned is not None and tuned.trace is not None:
        _replay(sch, tuned.trace, stacked.composite)
        return Scheduled(_described(sch, stacked), level)
    if level.name == DEFAULT or own is None:
        level = _with_said(level, default(sch, ops, target, told))
        return Scheduled(_described(sch, stacked), level)
    name = stacked.composite.name
    try:
        _own(stacked, own, sch, ops, target)
    except ScheduleError as err:  # of a part of it (schedules/each_op.py)
        raise ScheduleError(f"composite {name}: {in_words(err)}") from cause(err)
    except SelfbyocError:
        raise
    except Exception as err:  # whatever a user's function raises is his schedule's error
        text = in_words(err, raised_in_te(err))
        raise ScheduleError(
            f"composite {name}: its schedule raised {type(err).__name__}: {text}"
        ) from cause(err)
    return Scheduled(_described(sch, stacked), level)


def _with_said(level: Level, said: str) -> Level:
    """The level with what the default schedule says of a GPU's kernels: how many, then details."""
    if not said:
        return level
    return replace(level, reason=f"{level.reason}; {said.partition(';')[0]}", plan=said)


def _own(
    stacked: Stacked, own: Callable[..., Schedule | None], sch: Schedule, ops: Ops, target: Target
) -> None:
    """The composite's own schedule: of a kernel, over its stages and its plan."""
    if stacked.composite.kernel is None:
        made = own(sch, ops, target)
        if is_te_schedule(made):
            raise ScheduleError(f"its schedule returned a schedule of TE; {NOW}")
        if isinstance(made, Schedule) and not made.same_as(sch):
            text = "its schedule returned another schedule; what it did to `sch` is what counts"
            raise ScheduleError(f"{text}, and nothing is to be returned")
        return
    own(sch, located(stacked.stages, lambda name: get_block(sch, name)), stacked.plan)


def _replay(sch: Schedule, trace: Trace, composite: Composite) -> None:
    """Do to the schedule what MetaSchedule did when it found the trace."""
    try:
        apply_trace(sch, trace)
    except Exception as err:  # TVM raises plain errors of many types
        text = f"composite {composite.name}: its trace does not fit: {one_line(err)}"
        raise DecisionError(text) from err


def _block(sch: Schedule, name: str) -> Block | None:
    """The block of this name, or None: it may have been inlined."""
    names = {str(block.name_hint) for block in blocks_of(sch.mod["main"])}
    return get_block(sch, name) if name in names else None


def _described(sch: Schedule, stacked: Stacked) -> tvm.IRModule:
    """The scheduled module, its function with op info where the stacked one has it."""
    mod = tvm.IRModule(dict(sch.mod.functions.items()))
    if stacked.recorded is None:
        return mod
    mod.update_func(mod.get_global_var("main"), resealed(mod["main"], sch, stacked.recorded))
    return mod
