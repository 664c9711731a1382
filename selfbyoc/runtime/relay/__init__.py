"""Relay: relay.build; code for the virtual machine where extents are `Any`."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relay
from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule
from tvm.relay.op import op as registry

from ...codegen.relay import kept_targets
from ...ir.relay.hollow import hollow
from ...ir.relay.walk import postorder
from ...partition.relay import external_functions
from ...tvm import tvm
from ...tvm.as_tvm_lowers import lowering
from ...tvm.types import Executable, Expr, Function, IRModule, Module, PrimFunc, Target
from ..compiled import Compiled
from .calls import kernel_calls
from .least import with_places_checked
from .memory import planned_memory
from .shapes import with_shapes_checked

__all__ = ["kernel_calls"]

MOST_TIMES = 32  # that an element is computed for one of a fused function
FEW = 8  # ops of a fused function, where some element would be computed more often


def functions_outside(
    mod: IRModule, target: Target, sizes: Mapping[str, int]
) -> list[tuple[str, PrimFunc, int, int, str]]:
    """None that could be told: relay.build lowers them by itself, by TOPI's schedules."""
    return []


def compile_module(mod: tvm.IRModule, target: Target) -> Compiled:
    """A partitioned module compiled; the virtual machine plans no memory. TVM schedules what no
    composite took.
    """
    # Typed: the hook gets the whole functions as they are here.
    mod = relay.transform.InferType()(mod)
    if _has_open_sizes(mod["main"]):
        return Compiled(_compile_for_machine(mod, target), None)
    for name, func in external_functions(mod).items():
        mod.update_func(mod.get_global_var(name), hollow(func))
    config = {**lowering(target), **_fusing(mod["main"])}
    with kept_targets(), tvm.transform.PassContext(opt_level=3, config=config):
        built = relay.build(mod, target=target)
    return Compiled(weights_once(built), planned_memory(built.graph_json))


def _fusing(main: Function) -> dict[str, int]:
    """Options of the PassContext: functions of few ops, where one of all would be far longer.

    TVM 0.17 writes an op of a fused function wherever it is read: x + tanh(x) six times is 64 of
    tanh, and 9 s of LLVM; four times are 0.3 s.
    """
    times: dict[Expr, int] = {}  # what an op's expression reads first, as often as it is written
    for expr in postorder(main.body):
        if not isinstance(expr, relay.Call) or not isinstance(expr.op, tvm.ir.Op):
            continue
        pattern = expr.op.get_attr("TOpPattern")
        if pattern is not None and pattern <= registry.OpPattern.INJECTIVE:
            times[expr] = max(1, sum(times.get(arg, 0) for arg in expr.args))
    return {"relay.FuseOps.max_depth": FEW} if max(times.values(), default=0) > MOST_TIMES else {}


def _has_open_sizes(main: Function) -> bool:
    """Whether some size is known to a call alone: of an input, of a result, or between, as how many
    elements are not 0. The graph executor allocates before it runs.
    """
    types = (each.checked_type for each in postorder(main.body))
    return relay.ty.is_dynamic(main.checked_type) or any(map(relay.ty.is_dynamic, types))


def _compile_for_machine(mod: tvm.IRModule, target: Target) -> Module:
    """A partitioned module -> its executable, which the virtual machine runs."""
    mod = with_shapes_checked(with_places_checked(mod))
    config = {**lowering(target), **_fusing(mod["main"])}
    with kept_targets(), tvm.transform.PassContext(opt_level=3, config=config):
        return relay.vm.compile(mod, target=target).mod


def weights_once(lib: GraphExecutorFactoryModule) -> GraphExecutorFactoryModule:
    """What relay.build returned, holding each weight once.

    Beside any external module TVM 0.17 puts a loader with a copy of all parameters
    (CreateMetadataModule), which only external modules with constants of their own ever read.
    """
    loader = lib.lib
    if loader.type_key != "const_loader":
        return lib
    main, *others = loader.imported_modules
    if any(m.type_key not in ("llvm", "c") for m in others):
        return lib  # somebody else's external compiler, which may need it
    for module in others:
        main.import_module(module)
    return GraphExecutorFactoryModule(
        lib.ir_mod, lib.target, lib.executor, lib.graph_json, main,
        lib.libmod_name, lib.params, lib.function_metadata,
    )  # fmt: skip


def python_functions(native: Executable) -> tuple[str, ...]:
    """What a built model calls of TVM's Python package: the graph executor calls none."""
    return ()
