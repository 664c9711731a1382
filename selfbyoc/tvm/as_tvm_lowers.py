"""What is done to the functions that TVM makes of a model's ops and lowers itself."""

from __future__ import annotations

from collections.abc import Callable, Collection

from . import tir, tvm
from .c import for_c
from .divisions import without_traps
from .indices import within_buffers
from .nans import with_nans
from .starts import with_true_starts
from .types import IRModule, PrimFunc, Target
from .wrapping import with_wrapping


def lowering(target: Target) -> dict[str, object]:
    """Relay: options of the PassContext, for a build for this target."""
    changes = [within_buffers, without_traps, with_true_starts, with_nans, with_wrapping]
    if str(tvm.target.Target(target).kind) == "c":
        changes.append(for_c)
    return {"tir.add_lower_pass": [(0, _pass(change)) for change in changes]}


def _pass(change: Callable[[PrimFunc], PrimFunc]) -> tvm.transform.Pass:
    return tvm.tir.transform.prim_func_pass(
        lambda func, *_: change(func), opt_level=0, name=change.__name__
    )


@tvm.transform.module_pass(opt_level=0, name="WithoutTraps")
def defined(mod: IRModule, _: object) -> IRModule:
    """Relax: a module whose PrimFuncs, as LegalizeOps makes them, divide integers without traps.
    TVM folds some of them next, each by a build of its own.
    """
    return without_new_traps(mod, ())


def without_new_traps(mod: IRModule, before: Collection[str]) -> IRModule:
    """The same of those that are not among some names, which have been seen to."""
    done = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, func in mod.functions.items():
        if isinstance(func, tir.PrimFunc) and gv.name_hint not in before:
            done.update_func(gv, without_traps(func))
    return done
