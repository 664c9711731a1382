"""Relax: a schedule for what no composite took, as a pass between RunCodegen and tvm.compile."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tvm import relax

from ...codegen.schedule import default_schedule
from ...codegen.target import host_target
from ...common.interrupt import stopped
from ...errors import SymbolicError
from ...ir.relax.symbols import symbols as main_symbols
from ...partition import check_target
from ...tir.vector_math import vector_math
from ...tir.whole_vectors import with_whole_vectors
from ...tvm import Schedule, dtype_of, param_buffers, tir, tvm, walk
from ...tvm.alignment import any_alignment
from ...tvm.as_tvm_lowers import defined
from ...tvm.build import build_module
from ...tvm.c import for_c
from ...tvm.indices import within_buffers
from ...tvm.nans import with_nans
from ...tvm.selects import without_truncation
from ...tvm.starts import with_true_starts
from ...tvm.symbolic import symbols, with_identifiers, with_own_names
from ...tvm.types import PrimFunc, Target, TirNode
from ...tvm.wrapping import with_wrapping
from .norms import norms_are_scales
from .reshapes import reshapes_within
from .sizes import sizes_of_buffers
from .sums import refusing_places_of_none, with_sums_apart
from .symbolic import all_extents, scheduled_for_all_sizes
from .takes import clipped_takes
from .topk import with_enough
from .unfused import is_scheduled, opaque_ones, slices_apart
from .views import last_reshapes_are_views

logger = logging.getLogger(__name__)

LONG = ("int64", "uint64")


@tvm.transform.module_pass(opt_level=0, name="ScheduleRest")
class ScheduleRest:
    """Lower and fuse what no composite took, and give it our default schedule: TVM's CPU build
    leaves it as serial scalar loops. `unscheduled` then has what is left of these, with the reason.
    Functions that somebody scheduled already (`tirx.is_scheduled`) stay as they are, and those
    whose names are in `keep`.

    A pass between RunCodegen and tvm.compile; `build` runs it by itself.
    """

    def __init__(self, target: Target | None = None, keep: Collection[str] = ()) -> None:
        self.target = host_target() if target is None else check_target(target)
        self.keep = frozenset(keep)
        self.unscheduled: dict[str, str] = {}

    if TYPE_CHECKING:

        def __call__(self, mod: tvm.IRModule) -> tvm.IRModule:
            """As every pass of TVM's can be called."""

    def transform_module(self, mod: tvm.IRModule, _: object) -> tvm.IRModule:
        """The pass: the module, its PrimFuncs scheduled."""
        with self.target:
            passes = [
                norms_are_scales,
                clipped_takes,
                relax.transform.LegalizeOps(),
                relax.backend.DispatchSortScan(),  # tvm.compile's, after which nobody looks
                defined,
                opaque_ones,
                reshapes_within,
                relax.transform.AnnotateTIROpPattern(),
                slices_apart,
                relax.transform.FoldConstant(),
                relax.transform.FuseOps(),
                relax.transform.FuseTIR(),
                last_reshapes_are_views,
                sizes_of_buffers,
                relax.transform.DeadCodeElimination(),
            ]
            mod = tvm.transform.Sequential(passes)(mod)
            done, self.unscheduled = schedule_rest(mod, self.target, self.keep)
        return done


def schedule_rest(
    mod: tvm.IRModule, target: Target, keep: Collection[str] = ()
) -> tuple[tvm.IRModule, dict[str, str]]:
    """Our default schedule for every PrimFunc; the names of those that it does not fit, and why."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    unscheduled: dict[str, str] = {}
    given = {gv.name_hint for gv, func in mod.functions.items() if not _is_open(func)}
    for gv, func in mod.functions.items():
        if gv.name_hint in given:
            continue
        func = with_own_names(within_buffers(func))
        if gv.name_hint in keep or (symbols(func) and relax.analysis.has_reshape_pattern(func)):
            done.update_func(gv, any_alignment(with_sums_apart(func)))
            continue
        try:
            one = partial(_scheduled, target=target)
            if symbols(func):
                made = scheduled_for_all_sizes(gv.name_hint, func, one)
                done.update_func(gv, refusing_places_of_none(func, made.pop(gv.name_hint)))
                for name, part in made.items():
                    done[name] = part
            else:
                _check_sizes(func)
                done.update_func(gv, one(with_sums_apart(func)))
        except Exception as err:  # TVM's own, of a primitive that does not fit: the function stays
            if stopped(err):
                raise
            done.update_func(gv, any_alignment(with_sums_apart(func)))
            unscheduled[gv.name_hint] = _reason(err)
            logger.debug("left unscheduled: %s: %s", gv.name_hint, unscheduled[gv.name_hint])
    return _ready(done, given, target), unscheduled


def _check_sizes(func: PrimFunc) -> None:
    """What `sizes_of_buffers` has left has an extent that no schedule can learn from examples."""
    for axis in (a for a in all_extents(func) if not isinstance(a, tir.IntImm)):
        raise SymbolicError(f"its extent {axis} is handed to it as a number")


def _is_open(func: PrimFunc) -> bool:
    """Whether nobody has scheduled it yet."""
    return isinstance(func, tir.PrimFunc) and not is_scheduled(func)


def _ready(mod: tvm.IRModule, given: Collection[str], target: Target) -> tvm.IRModule:
    """The module, its functions beside those `given` as TVM computes what they mean."""
    for gv, func in list(mod.functions.items()):
        if gv.name_hint in given:
            continue
        func = with_wrapping(with_nans(with_enough(with_true_starts(func))))
        is_c = str(target.kind) == "c"  # which has no vectors
        mod.update_func(gv, for_c(with_identifiers(func)) if is_c else with_whole_vectors(func))
    return mod


def _reason(err: Exception) -> str:
    return (str(err).strip().splitlines() or [type(err).__name__])[-1]


def failing(
    mod: tvm.IRModule, target: Target, last: Callable[[PrimFunc], PrimFunc] | None = None
) -> dict[str, str]:
    """The PrimFuncs of a module that do not compile, each alone, changed at `last`; and why."""
    found: dict[str, str] = {}
    for gv, func in mod.functions.items():
        if not isinstance(func, tir.PrimFunc):
            continue
        try:
            public = func.with_attr("global_symbol", gv.name_hint)  # of a private one no host code
            build_module(tvm.IRModule({gv.name_hint: public}), target, last)
        except Exception as err:  # TVM's own, of many kinds
            if stopped(err):
                raise
            found[gv.name_hint] = _reason(err)
    return found


def functions_outside(
    mod: tvm.IRModule, target: Target, sizes: Mapping[str, int]
) -> list[tuple[str, PrimFunc, int, int, str]]:
    """What `main` calls beside kernels: name, scheduled PrimFunc, its operations, how many calls,
    and why it is left unscheduled, if it is; at these sizes of main's symbols.
    """
    rest = ScheduleRest(target)
    known = {name: sizes[name] for name in main_symbols(mod["main"]) if name in sizes}
    mod = relax.transform.BindSymbolicVars(known, "main")(mod) if known else mod
    done = rest(mod)
    calls: Counter[str] = Counter()
    for block in done["main"].body.blocks:
        for value in (binding.value for binding in block.bindings):
            if isinstance(value, relax.Call) and getattr(value.op, "name", "") == "relax.call_tir":
                calls[value.args[0].name_hint] += 1
    return [
        (name, done[name], _flops(done[name]), n, rest.unscheduled.get(name, ""))
        for name, n in calls.items()
    ]


def _flops(func: PrimFunc) -> int:
    """0 where an extent is not known."""
    shapes = [getattr(buffer, "shape", None) for buffer in param_buffers(func)]
    if not all(s is not None and all(isinstance(e, tir.IntImm) for e in s) for s in shapes):
        return 0
    return int(tvm.s_tir.analysis.estimate_tir_flops(tvm.IRModule({"main": func})))


def _scheduled(func: PrimFunc, target: Target) -> PrimFunc:
    sch = Schedule(tvm.IRModule({"main": _narrow(vector_math(without_truncation(func)))}))
    default_schedule(sch, None, target)
    return any_alignment(sch.mod["main"]).with_attr("tirx.is_scheduled", True)


def _narrow(func: PrimFunc) -> PrimFunc:
    """A PrimFunc with indices of 32 bits, where none of its values has 64: what narrows them later
    (0.27) loses the pragmas of loops, among them that the last tile is apart.
    """
    if not _only_indices_are_long(func):
        return func
    return tir.transform.ForceNarrowIndexToInt32()(tvm.IRModule({"main": func}))["main"]


def _only_indices_are_long(func: PrimFunc) -> bool:
    found: list[str] = []
    sizes: list[int] = []

    def visit(node: TirNode) -> None:
        kind = type(node).__name__
        if kind in ("Cast", "Call", "BufferLoad", "TensorLoad"):
            found.append(dtype_of(node))
        elif kind == "SBlock":
            buffers.extend(node.alloc_buffers)

    buffers = list(param_buffers(func))
    walk(func.body, visit)
    for buffer in buffers:
        if not hasattr(buffer, "shape"):
            return False  # a scalar argument: an extent that is not known
        if not all(hasattr(extent, "value") for extent in buffer.shape):
            return False
        found.append(str(buffer.dtype))
        sizes.append(math.prod(int(extent) for extent in buffer.shape))
    return not any(dtype in LONG for dtype in found) and max(sizes, default=0) < 1 << 31
