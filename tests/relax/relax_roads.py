"""Relax's ways to run, and the passes that a user may run before partitioning."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

import selfbyoc
from selfbyoc._tvm import tensor

TARGET = selfbyoc.host_target()


def _in_mode(mode: str) -> Any:
    def run(mod: Any, level: int, args: dict[str, np.ndarray]) -> list[np.ndarray]:
        with tvm.transform.PassContext(opt_level=level):
            with_kernels = relax.transform.RunCodegen()(mod)
            executable = relax.build(with_kernels, TARGET, exec_mode=mode)
        main = relax.VirtualMachine(executable, tvm.cpu())["main"]
        found = main(*(tensor(a) for a in args.values()))
        return [found.numpy()] if hasattr(found, "numpy") else [f.numpy() for f in found]

    return run


EXECUTORS = {mode: _in_mode(mode) for mode in ("bytecode", "compiled")}


def _by(*passes: Any) -> Any:
    def run(mod: Any) -> Any:
        with TARGET, tvm.transform.PassContext(opt_level=3):
            return tvm.transform.Sequential(passes)(mod)

    return run


PASSES = {
    "inputs": lambda mod: mod,
    "constants": lambda mod: mod,
    "FoldConstant": _by(relax.transform.FoldConstant()),
    "ConvertLayout": _by(relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})),
    "LegalizeOps": _by(relax.transform.LegalizeOps()),
}


def with_inputs(main: Any) -> tuple[Any, list[np.ndarray]]:
    """Only for what computes other numbers than before, which no pass of Relax does."""
    raise NotImplementedError
