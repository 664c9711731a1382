"""Relax's ways to run, and the passes that a user may run before partitioning."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

import selfbyoc

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from executor_cells import relax as roads  # isort: skip

TARGET = selfbyoc.host_target()


def _executor(mode: str) -> Any:
    def run(mod: Any, level: int, args: dict[str, np.ndarray]) -> list[np.ndarray]:
        built = roads.build(mode, mod, TARGET, level, {})
        return roads.run(mode, roads.session(mode, built), args)

    return run


EXECUTORS = {mode: _executor(mode) for mode in roads.EXECUTORS}


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
