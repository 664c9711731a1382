"""CUDA kernels run on an NVIDIA GPU, by CuPy: TVM's wheels have no runtime for one."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...codegen.external import External
from ...common.probes import Answer, ask_python
from ...errors import LoweringError, MissingExtra, ToolError, one_line
from ...tvm.types import NDArray, Target
from ..guards import GUARD, POISON, Overrun
from . import cuda_question
from .checks import lowered_right
from .headers import headers
from .lowered import Launch, Lowered

INSTALL = "pip install 'cupy-cuda12x[ctk]', or cupy-cuda13x, as the driver is"


@dataclass(frozen=True)
class Device:
    """A GPU that computes right."""

    device: str
    arch: str
    driver: int  # the newest CUDA that it knows: 13000 is 13.0

    @property
    def target(self) -> dict[str, str]:
        """What kernels are built for, to run on it."""
        return {"kind": "cuda", "arch": self.arch}

    def __str__(self) -> str:
        return f"{self.device} ({self.arch}), CUDA {self.driver // 1000}.{self.driver % 1000 // 10}"


def serving() -> Device:
    """The GPU. Raises MissingExtra where CuPy is not installed, and ToolError where it does not
    serve: there is no GPU, say.
    """
    if why := cannot_run():
        raise (ToolError if _is_installed() else MissingExtra)(why)
    return Device(**_named(_asked().printed))


def cannot_run() -> str:
    """Why no CUDA kernel is run here, or ''."""
    if not _is_installed():
        return f"CuPy is not installed: {INSTALL}"
    why = _asked().why_not
    return f"CuPy runs nothing here: {why}" if why else ""


def program(source: External, target: Target) -> Program:
    """An external function as the GPU runs it."""
    return Program(lowered_right(source, target))


class Program:
    """The kernels of a function, compiled for the GPU; called with arrays, the last ones its
    results.
    """

    def __init__(self, made: Lowered) -> None:
        self.made = made
        self.kernels = _compiled(made)

    def __call__(self, *arrays: np.ndarray) -> None:
        """Run on copies in the GPU's memory, between guards. Raises Overrun."""
        scratch = (np.full(size, POISON, "uint8") for size in self.made.workspaces)
        memory = [_Guarded(array) for array in (*arrays, *scratch)]
        self.launch([each.inner for each in memory])
        _cupy().cuda.runtime.deviceSynchronize()
        for n, each in enumerate(memory):
            if each.overrun:
                raise Overrun(f"it wrote outside argument {n}, on the GPU")
        for array, each in zip(arrays, memory, strict=False):
            array.reshape(-1).view("uint8")[...] = each.inner.get()

    def launch(self, memory: list[NDArray]) -> None:
        """Every kernel in order, on CuPy's stream of this thread. `memory`: arrays of CuPy, of the
        arguments, then of the workspaces.
        """
        for launch in self.made.launches:
            self._launch(launch, memory)

    def _launch(self, launch: Launch, memory: list[NDArray]) -> None:
        given = tuple(memory[n] for n in launch.memory)
        self.kernels[launch.name](launch.grid, launch.block, given)


class _Guarded:
    """A copy of an array in the GPU's memory, between guards."""

    def __init__(self, array: np.ndarray) -> None:
        cupy, given = _cupy(), np.ascontiguousarray(array).reshape(-1).view("uint8")
        size = len(given)
        self.whole = cupy.full(size + 2 * GUARD, POISON, "uint8")
        self.inner = self.whole[GUARD : GUARD + size]
        self.inner.set(given)

    @property
    def overrun(self) -> bool:
        around = (self.whole[:GUARD], self.whole[GUARD + len(self.inner) :])
        return any(bool((part != POISON).any()) for part in around)


def _compiled(made: Lowered) -> dict[str, Callable[..., None]]:
    cupy = _cupy()
    try:
        module = cuda_question.loaded(cupy, made.source, headers())
        return {launch.name: module.get_function(launch.name) for launch in made.launches}
    except (cupy.cuda.compiler.CompileException, cupy.cuda.driver.CUDADriverError) as err:
        raise LoweringError(f"CUDA does not compile it: {one_line(err)}") from err


def _is_installed() -> bool:
    return importlib.util.find_spec("cupy") is not None


@cache
def _asked() -> Answer:
    """In a process of its own: forks of one that has used CUDA cannot."""
    question = Path(cuda_question.__file__).read_text(encoding="utf-8")
    return ask_python(question, '"right": true', *headers())


def _named(printed: str) -> dict[str, Any]:
    found = re.findall(r'^{"device": .*}$', printed, re.MULTILINE)
    return dict(json.loads(found[-1]))


def _cupy() -> ModuleType:
    import cupy

    return cupy
