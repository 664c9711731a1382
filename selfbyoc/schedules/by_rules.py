"""A schedule made of dlight's rules: TVM's own, or a user's in the same form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from ..codegen.info.ops import Ops
from ..errors import ScheduleError, SelfbyocError, one_line
from ..language.te_schedule import declared_in_te
from ..tvm.tune import apply_steps, dlight
from ..tvm.types import PrimFunc, Schedule, ScheduleRule, Target

__all__ = ["ByRules", "by_rules"]


def by_rules(*rules: ScheduleRule | str) -> ByRules:
    """A schedule for `Composite(schedule=...)` that is that of the first dlight rule that applies.

    A rule is one of TVM's by its name (`"cpu.GEMV"`, `"gpu.Matmul"`), or any object with
    `apply(func, target, tunable)` that returns a schedule, or None where it does not apply. Raises
    ScheduleError for a rule that this TVM lacks; while scheduling, where no rule applies.
    """
    if not rules:
        raise ScheduleError(f"by_rules: expected a rule, found none; TVM has {_known()}")
    return ByRules(tuple(map(_rule, rules)))


@dataclass(frozen=True)
class ByRules:
    """What `by_rules` returns."""

    rules: Sequence[ScheduleRule]

    def __call__(self, sch: Schedule, ops: Ops, target: Target) -> None:
        func = sch.mod["main"]
        for rule in self.rules:
            found = _asked(rule, func, target)
            if found is not None:
                apply_steps(found, sch)
                return
        names = ", ".join(map(_name, self.rules))
        raise ScheduleError(f"by_rules: none of {names} applies to its function for {target.kind}")


def _asked(rule: ScheduleRule, func: PrimFunc, target: Target) -> Schedule | None:
    """The schedule that a rule makes, if it does."""
    try:
        found = rule.apply(func, target, False)
    except SelfbyocError:  # of a `choose` in it
        raise
    except Exception as err:  # whatever a rule raises
        raise ScheduleError(f"by_rules: {_name(rule)} raised {one_line(err)}") from err
    if isinstance(found, (list, tuple)):
        found = found[0] if found else None
    if found is not None and not hasattr(found, "trace"):
        raise ScheduleError(f"by_rules: {_name(rule)}: expected a schedule, found {found!r}")
    return found


def _rule(given: ScheduleRule | str) -> ScheduleRule:
    if not isinstance(given, str):
        if callable(getattr(given, "apply", None)) and not isinstance(given, type):
            return given
        why = declared_in_te(given) if callable(given) and not isinstance(given, type) else ""
        text = f"by_rules: expected a rule of dlight or its name, {why or f'found {given!r}'}"
        raise ScheduleError(text)
    known = _known()
    if given not in known:
        raise ScheduleError(f"by_rules: dlight of this TVM has no {given!r}; it has {known}")
    folder, _, name = given.partition(".")
    return getattr(getattr(dlight(), folder), name)()


def _known() -> list[str]:
    """The rules of this TVM, as `cpu.GEMV`."""
    base = dlight().ScheduleRule
    return sorted(
        f"{folder}.{name}"
        for folder, module in vars(dlight()).items()
        if isinstance(module, ModuleType) and folder in ("cpu", "gpu", "adreno")
        for name, rule in vars(module).items()
        if isinstance(rule, type) and issubclass(rule, base)
    )


def _name(rule: ScheduleRule) -> str:
    return type(rule).__name__
