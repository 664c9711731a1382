"""PrimFuncs -> a runtime module, with the passes of either TVM."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from . import GENERATION, make_target, target_dict, tir, tvm
from .types import IRModule, Module, PrimFunc

# Options are the process's: TVM sets them as a build begins and takes them back at its end, by a
# flag that two threads at once leave wrong for good (0.17 and 0.27).
_options = threading.Lock()


def _free() -> None:
    """In a child, which has none of the threads that may hold it."""
    global _options
    _options = threading.Lock()


os.register_at_fork(after_in_child=_free)


def build_module(
    mod: tvm.IRModule,
    target: tvm.target.Target,
    last: Callable[[PrimFunc], PrimFunc] | None = None,
    options: Sequence[str] = (),
) -> Module:
    """Lower an IRModule of PrimFuncs to a runtime.Module. `last` changes each lowered function just
    before allocations and the like become calls of the runtime; `options` are LLVM's (`-cl-opt`).
    """
    if not options:
        return _built(mod, target, last)
    given = target_dict(target)
    own = make_target({**given, "cl-opt": [*given.get("cl-opt", ()), *options]})
    with _options:
        return _built(mod, own, last)


def _built(
    mod: tvm.IRModule, target: tvm.target.Target, last: Callable[[PrimFunc], PrimFunc] | None
) -> Module:
    if GENERATION == "relax":
        return tvm.compile(mod, target=target, tir_pipeline=pipeline(last)).mod
    config = dict(tvm.transform.PassContext.current().config)
    if last is not None:
        change = tir.transform.prim_func_pass(lambda func, *_: last(func), opt_level=0)
        config["tir.add_lower_pass"] = [(3, change)]
    with tvm.transform.PassContext(opt_level=3, config=config):
        return tvm.build(mod, target=target)


def pipeline(last: Callable[[PrimFunc], PrimFunc] | None) -> str:
    """The name of 0.27's pipeline with a change of each function at its end: one for each thread,
    as TVM looks it up later, and another thread may have another change.
    """
    if last is None:
        return "default"
    lower, on_host, on_device = tir.get_tir_pipeline("default")

    @tvm.transform.module_pass(opt_level=0)
    def change(mod: IRModule, _: object) -> IRModule:
        return tvm.IRModule({name: last(func) for name, func in mod.functions_items()})

    both = tvm.transform.Sequential([lower, change])
    name = f"tefuse_{threading.get_ident()}"
    tir.register_tir_pipeline(name, lambda: (both, on_host, on_device))
    return name
