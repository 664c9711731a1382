"""Relay's executors, and the passes that a user may run before partitioning."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relay

import selfbyoc

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from executor_cells import relay as roads  # isort: skip
from executor_cells.reload import reloaded  # isort: skip

TARGET = selfbyoc.host_target()


def context(level: int) -> Any:
    return tvm.transform.PassContext(opt_level=level)


def _executor(name: str) -> Any:
    def run(mod: Any, level: int, args: dict[str, np.ndarray]) -> list[np.ndarray]:
        built = roads.build(name, mod, TARGET, level, {})
        if name == "aot":  # it does not run in memory
            built = reloaded(roads, name, built)
        return roads.run(name, roads.session(name, built), args)

    return run


EXECUTORS = {name: _executor(name) for name in roads.EXECUTORS}


def _by(*passes: Any) -> Any:
    def run(mod: Any) -> Any:
        with TARGET, context(3):
            return tvm.transform.Sequential([relay.transform.InferType(), *passes])(mod)

    return run


def quantized(mod: Any) -> Any:
    """By `relay.quantize`; it wants `numpy.math`, gone since NumPy 2 (docs/makers/tvm-notes.md)."""
    np.math = math
    try:
        with relay.quantize.qconfig(
            calibrate_mode="global_scale",
            global_scale=8.0,
            skip_conv_layers=[],
            skip_dense_layer=False,
        ):
            return relay.quantize.quantize(mod)
    finally:
        del np.math


PASSES = {
    "inputs": lambda mod: mod,
    "constants": lambda mod: mod,
    "FoldConstant": _by(relay.transform.FoldConstant()),
    "AlterOpLayout": _by(relay.transform.AlterOpLayout()),
    "ConvertLayout": _by(relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"]})),
    "quantize": quantized,
}


def with_inputs(main: Any) -> tuple[Any, list[np.ndarray]]:
    """A function with its constants as further parameters, and their values."""
    constants: dict[Any, Any] = {}

    class Inputs(relay.ExprMutator):
        def visit_constant(self, const: Any) -> Any:
            if const.data.numpy().size == 1:
                return const
            name = f"constant{len(constants)}"
            return constants.setdefault(const, relay.Var(name, const.checked_type))

        def visit_call(self, call: Any) -> Any:
            """Annotations (stop_fusion, cast_hint) mean nothing in NumPy."""
            is_note = getattr(call.op, "name", "").startswith("annotation.")
            return self.visit(call.args[0]) if is_note else super().visit_call(call)

    body = Inputs().visit(main.body)
    whole = relay.Function([*main.params, *constants.values()], body)
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(whole))["main"]
    return typed, [const.data.numpy() for const in constants]
