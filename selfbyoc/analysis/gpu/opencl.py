"""OpenCL kernels run on this CPU: what a GPU would compute, without one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ...codegen.external import External
from ...errors import LoweringError, ToolError
from ...tvm.types import NDArray, Target
from ..guards import POISON
from .checks import lowered_right
from .lowered import Launch, Lowered
from .runtimes import OPTIONS, only, serving

if TYPE_CHECKING:
    import pyopencl as cl

# What schedules may take of it is what a CUDA device has; POCL itself gives more.
TARGET = {
    "kind": "opencl",
    "max_num_threads": 1024,
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 48 * 1024,
}


def program(source: External, target: Target) -> Program:
    """An external function as a GPU would run it."""
    return Program(lowered_right(source, target))


class Program:
    """The kernels of a function, compiled by the CPU's OpenCL; called with arrays, the last ones
    its results.
    """

    def __init__(self, made: Lowered) -> None:
        cl, self.context = _opencl()
        self.made = made
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # its log is not empty
            built = _built(cl, self.context, made.source)
        self.kernels = {launch.name: getattr(built, launch.name) for launch in made.launches}

    def __call__(self, *arrays: np.ndarray) -> None:
        cl, _ = _opencl()
        queue = cl.CommandQueue(self.context)
        workspaces = [np.full(size, POISON, "uint8") for size in self.made.workspaces]
        # In place, where the array is aligned: a write beside it is seen by whoever has put guards
        # there.
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        memory = [cl.Buffer(self.context, flags, hostbuf=a) for a in (*arrays, *workspaces)]
        for launch in self.made.launches:
            self._launch(queue, launch, memory)
        for array, buffer in zip(arrays, memory, strict=False):
            cl.enqueue_copy(queue, array, buffer)  # where it is not, it works on a copy

    def _launch(self, queue: cl.CommandQueue, launch: Launch, memory: list[NDArray]) -> None:
        whole = tuple(g * b for g, b in zip(launch.grid, launch.block, strict=True))
        given = (memory[n] for n in launch.memory)
        self.kernels[launch.name](queue, whole, launch.block, *given)


def _built(cl: ModuleType, context: cl.Context, source: str) -> cl.Program:
    try:
        return cl.Program(context, source).build(options=list(OPTIONS))
    except cl.RuntimeError as err:
        raise LoweringError(f"OpenCL does not compile it: {err}") from err


@cache
def _opencl() -> tuple[ModuleType, cl.Context]:
    """pyopencl, and a context of the CPU whose runtime serves."""
    runtime = serving()
    with _environment(only(runtime.file)):  # read once, when OpenCL is first asked for platforms
        import pyopencl as cl

        found = [
            device
            for platform in cl.get_platforms()
            for device in platform.get_devices(cl.device_type.CPU)
            if (platform.name, device.name) == (runtime.platform, runtime.device)
        ]
    if not found:
        raise ToolError(f"{runtime} serves, and is not there: this process had loaded another one")
    return cl, cl.Context(found[:1])


@contextmanager
def _environment(names: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
