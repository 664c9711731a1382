"""Relay: relay.build and the graph executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule

from .._tvm import tensor, tvm


def compile_module(mod: tvm.IRModule, target: Any) -> tuple[Any, dict[str, str]]:
    """A partitioned module -> the executor factory; TVM schedules what no composite took."""
    with tvm.transform.PassContext(opt_level=3):
        return weights_once(relay.build(mod, target=target)), {}


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


def session(native: Any) -> Any:
    """A graph executor of the library on the CPU."""
    return graph_executor.GraphModule(native["default"](tvm.cpu()))


def run(module: Any, names: Sequence[str], tensors: Sequence[Any]) -> list[np.ndarray]:
    """Set the inputs, run, get the outputs."""
    for name, value in zip(names, tensors, strict=True):
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def calling(module: Any, names: Sequence[str], tensors: Sequence[Any]) -> tuple[Any, Any]:
    """The executor's normal call on inputs that are set once, and what reads its last result."""
    for name, value in zip(names, tensors, strict=True):
        module.set_input(name, value)
    count = module.get_num_outputs()
    return module.run, lambda: [module.get_output(i).numpy() for i in range(count)]


def bound(native: Any, names: Sequence[str]) -> Callable[[Sequence[Any]], list[Any]]:
    """A graph executor of its own, from tensors to tensors: it reads the inputs where they are, and
    the outputs are its own memory, until the next call.
    """
    module = native["default"](tvm.cpu())
    put, execute, get = (module[n] for n in ("set_input_zero_copy", "run", "get_output"))
    places = [int(module["get_input_index"](name)) for name in names]
    count = int(module["get_num_outputs"]())
    last: list[Any] = [None] * len(places)

    def call(tensors: Sequence[Any]) -> list[Any]:
        for n, value in enumerate(tensors):
            if last[n] is not value:
                put(places[n], value)
                last[n] = value  # also kept alive: the executor holds but an address
        execute()
        return [get(i) for i in range(count)]

    return call


def to_tensor(array: np.ndarray) -> Any:
    """A TVM tensor, aligned: TVM allocates and copies."""
    return tensor(np.asarray(array, order="C"))
