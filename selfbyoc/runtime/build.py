"""`build`: the whole road in one call, on either generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..codegen.target import host_target
from ..partition import check_module, check_target, partition_for_tefuse
from ..partition.report import REPORT
from .generation import runtime
from .library import Library

if TYPE_CHECKING:
    from ..composite import Composite


def build(
    mod: Any,
    target: Any | None = None,
    params: Mapping[str, Any] | None = None,
    composites: Iterable[Composite] | None = None,
) -> Library:
    """Partition (unless that is done), compile and wrap up a model.

    target None is the host's CPU with its real vector width; params are weights by name, bound as
    constants. Raises what partition_for_tefuse raises, and ScheduleError or LoweringError for a
    composite that fails.
    """
    check_module(mod)
    target = host_target() if target is None else check_target(target)
    if mod.attrs is None or REPORT not in mod.attrs.keys():  # noqa: SIM118 (no Python dict)
        mod = partition_for_tefuse(mod, params, target, composites)
    native, unscheduled = runtime.compile_module(mod, target)
    return Library(native, _inputs(mod), unscheduled)


def _inputs(mod: Any) -> tuple[Any, ...]:
    from ..ir.generation import ir

    return tuple((v.name, v.shape, v.dtype) for v in ir.parameters(mod["main"]))
