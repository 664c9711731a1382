"""Stacked -> scheduled IRModule: the composite's own schedule, or the default one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._tvm import Schedule, get_block, tvm
from ..errors import ScheduleError, SelfbyocError
from .op_info import Ops, with_op_info
from .stack import Stacked

OWN, DEFAULT = "own schedule", "default schedule"


@dataclass(frozen=True)
class Scheduled:
    """A scheduled function `main` in a module, and which level its schedule came from."""

    mod: tvm.IRModule
    level: str


def apply_schedule(stacked: Stacked, target: Any, default: Callable[..., Any]) -> Scheduled:
    """The user asked for the composite's schedule: if it raises, that is an error and no
    fallback.
    """
    sch = Schedule(tvm.IRModule({"main": stacked.func.with_attr("global_symbol", "main")}))
    ops = Ops(stacked.ops, lambda name: get_block(sch, name))
    own = stacked.composite.schedule_for(str(target.kind))
    if own is None:
        default(sch, ops, target)
        return Scheduled(_described(sch.mod, stacked), DEFAULT)
    try:
        own(sch, ops, target)
    except SelfbyocError:
        raise
    except (
        Exception
    ) as err:  # whatever a user's function raises is reported as his schedule's error
        name = stacked.composite.name
        raise ScheduleError(
            f"composite {name}: its schedule raised {type(err).__name__}: {err}"
        ) from err
    return Scheduled(_described(sch.mod, stacked), OWN)


def _described(mod: tvm.IRModule, stacked: Stacked) -> tvm.IRModule:
    """The op info again, in case a schedule replaced the function."""
    mod = tvm.IRModule(dict(mod.functions.items()))
    mod.update_func(mod.get_global_var("main"), with_op_info(mod["main"], stacked.ops))
    return mod
