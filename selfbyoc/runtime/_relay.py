"""Relay: relay.build and the graph executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relay
from tvm.contrib import graph_executor

from .._tvm import tensor, tvm


def compile_module(mod: tvm.IRModule, target: Any) -> tuple[Any, dict[str, str]]:
    """A partitioned module -> the executor factory; TVM schedules what no composite took."""
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(mod, target=target), {}


def session(native: Any) -> Any:
    """A graph executor of the library on the CPU."""
    return graph_executor.GraphModule(native["default"](tvm.cpu()))


def run(module: Any, names: Sequence[str], tensors: Sequence[Any]) -> list[np.ndarray]:
    """Set the inputs, run, get the outputs."""
    for name, value in zip(names, tensors, strict=True):
        module.set_input(name, value)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def to_tensor(array: np.ndarray) -> Any:
    """A TVM tensor, aligned: TVM allocates and copies."""
    return tensor(np.ascontiguousarray(array))
