"""One kernel as it will be used: its outputs full of NaN before, and guards around all memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from ...codegen.external import External
from ...codegen.lower import lower
from ...graph import OpGraph, Value
from ...machine import host
from ...tvm import GENERATION, get_func, tvm
from ...tvm.types import NDArray, Target
from ..gpu import cuda, opencl, runtimes
from ..guards import POISON, Guarded, Overrun
from .inputs import Array

OTHER_POISON = 0x7B  # large: a maximum or a comparison drops a NaN that it should not have read


class Runner:
    """The compiled kernel."""

    def __init__(self, source: External, target: Target) -> None:
        self.outputs = source.graph.outputs
        self.function = _function(source, target)

    def at(self, graph: OpGraph) -> Runner:
        """The same for inputs of this graph, of other sizes of its symbols."""
        other = copy(self)
        other.outputs = graph.outputs
        return other

    def __call__(self, inputs: Sequence[Array], poison: int = POISON) -> list[Array]:
        """Run once; the outputs as the kernel left them, in memory of their own."""
        given = [Guarded(a.shape, str(a.dtype), poison) for a in inputs]
        for guarded, array in zip(given, inputs, strict=True):
            guarded.array[...] = array
        results = [Guarded(_extents(v), v.dtype, poison) for v in self.outputs]
        self.function(*(g.array for g in [*given, *results]))
        for n, (guarded, array) in enumerate(zip(given, inputs, strict=True)):
            if guarded.overrun or guarded.array.tobytes() != array.tobytes():
                raise Overrun(f"it wrote to input {n} or around it")
        for n, guarded in enumerate(results):
            if guarded.overrun:
                raise Overrun(f"it wrote outside output {n}")
        return [guarded.array for guarded in results]


def cannot_run(target: Target) -> str:
    """Why this machine cannot run what is built for a target, or ''."""
    kind = str(target.kind)
    if kind in ("opencl", "cuda"):
        return (runtimes if kind == "opencl" else cuda).cannot_run()
    return host.cannot_run(target)


def ran_by(target: Target) -> str:
    """Who runs what is built for a target; '' where that is the CPU itself, or where there is no
    GPU: that is said of each kernel. Raises ToolError and MissingExtra where no OpenCL serves.
    """
    kind = str(target.kind)
    if kind == "cuda":
        return "" if cuda.cannot_run() else str(cuda.serving())
    return str(runtimes.serving()) if kind == "opencl" else ""


def _function(source: External, target: Target) -> Callable[..., None]:
    """What is called with arrays, the last ones its results."""
    if str(target.kind) == "cuda":
        return cuda.program(source, target)
    if str(target.kind) == "opencl":
        return opencl.program(source, target)
    compiled = get_func(lower(source, target), source.symbol)
    return lambda *arrays: compiled(*map(_tensor, arrays))


def _extents(value: Value) -> tuple[int, ...]:
    return tuple(int(extent) for extent in value.shape)


def _tensor(array: Array) -> NDArray:
    """The array's own memory as a TVM tensor."""
    return (tvm.runtime if GENERATION == "relax" else tvm.nd).from_dlpack(array)
