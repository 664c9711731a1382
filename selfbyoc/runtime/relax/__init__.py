"""Relax: RunCodegen, a schedule for what no composite took and tvm.compile."""

from __future__ import annotations

import re

from tvm import relax

from ...codegen.relax.calls import kernels
from ...common.interrupt import stopped
from ...machine.gpu import is_gpu
from ...simplify.relax.exprs import steps_of
from ...tir.lowering import at_last_beside
from ...tvm import tvm
from ...tvm.build import pipeline
from ...tvm.config import kernel_config
from ...tvm.types import Executable, Target
from ..compiled import Compiled
from .cached_calls import vm_pipeline
from .calls import kernel_calls
from .computed_sizes import computed_sizes_first
from .empty import without_empty_constants
from .memory import Watched
from .rest import ScheduleRest, failing, functions_outside
from .sums import has_sums

__all__ = ["functions_outside", "kernel_calls"]


def compile_module(mod: tvm.IRModule, target: Target) -> Compiled:
    """A partitioned module compiled."""
    watched, config = Watched(), kernel_config(target)
    with target, tvm.transform.PassContext(opt_level=3, config=config, instruments=[watched]):
        # It puts the kernels into these functions alone; "main" is all that it takes by itself.
        names = ["main", *steps_of(mod)]
        coded = computed_sizes_first(relax.transform.RunCodegen(entry_functions=names)(mod))
        try:
            native, unscheduled, sums = _with_rest(coded, target)
            return Compiled(native, watched.bytes, unscheduled, sums, watched.lowered())
        finally:
            kernels.forget(coded)


def _with_rest(
    coded: tvm.IRModule, target: Target
) -> tuple[Executable, dict[str, str], tuple[str, ...]]:
    """Schedule what no composite took, and compile; what a schedule made that does not compile is
    compiled as TVM has it. The Executable, what is unscheduled, and the sums among that.
    """

    def done(
        mod: tvm.IRModule, unscheduled: dict[str, str]
    ) -> tuple[Executable, dict[str, str], tuple[str, ...]]:
        # What a GPU's own pipeline schedules, no other does.
        of_graph = "default" if is_gpu(target) else vm_pipeline()
        native = tvm.compile(mod, target, relax_pipeline=of_graph, tir_pipeline=pipeline(last))
        return native, unscheduled, tuple(name for name in unscheduled if has_sums(mod[name]))

    last = at_last_beside if str(target.kind) == "llvm" else None
    rest = ScheduleRest(target)
    scheduled = without_empty_constants(rest(coded))
    try:
        return done(scheduled, rest.unscheduled)
    except Exception as err:  # TVM's own, of many kinds; it says seldom of which function
        wrong = {} if stopped(err) else failing(scheduled, target, last)
        if not wrong:
            raise
    rest = ScheduleRest(target, keep=wrong)
    scheduled = without_empty_constants(rest(coded))
    return done(scheduled, {**rest.unscheduled, **wrong})


def weights_once(native: Executable) -> Executable:
    """Relax stores each weight once as it is."""
    return native


def python_functions(native: Executable) -> tuple[str, ...]:
    """What a built model calls of TVM's Python package, which no other program has."""
    return tuple(sorted(set(re.findall(r"relax\.run\.\w+", native.stats()))))
