"""Relax: RunCodegen, a schedule for what no composite took, tvm.compile and the virtual machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from ...codegen.parallel import at_once
from ...codegen.relax.calls import kernels
from ...common.interrupt import stopped
from ...errors import InputError
from ...machine.gpu import is_gpu
from ...simplify.relax.exprs import steps_of
from ...tvm import tensor, tvm
from ...tvm.config import kernel_config
from ...tvm.types import Executable, Module, NDArray, PackedFunc, Target
from ..alignment import lies_well, read_only
from ..compiled import Compiled
from ..system_compiler import check_compiler
from .cached_calls import vm_pipeline
from .calls import kernel_calls
from .computed_sizes import computed_sizes_first
from .empty import without_empty_constants
from .memory import PlannedMemory
from .rest import ScheduleRest, failing, functions_outside
from .sums import has_sums

from_dlpack, Tensor = tvm.runtime.from_dlpack, tvm.runtime.Tensor

__all__ = ["functions_outside", "kernel_calls"]


def compile_module(mod: tvm.IRModule, target: Target) -> Compiled:
    """A partitioned module compiled."""
    planned, config = PlannedMemory(), kernel_config(target)
    with target, tvm.transform.PassContext(opt_level=3, config=config, instruments=[planned]):
        # It puts the kernels into these functions alone; "main" is all that it takes by itself.
        names = ["main", *steps_of(mod)]
        coded = computed_sizes_first(relax.transform.RunCodegen(entry_functions=names)(mod))
        try:
            native, unscheduled, sums = _with_rest(coded, target)
            return Compiled(native, planned.bytes, unscheduled, sums)
        finally:
            kernels.forget(coded)


def _with_rest(
    coded: tvm.IRModule, target: Target
) -> tuple[Executable, dict[str, str], tuple[str, ...]]:
    """Schedule what no composite took, and compile; what a schedule made that does not compile is
    compiled as TVM has it. The Executable, what is unscheduled, and the sums among that.
    """

    def done(
        mod: tvm.IRModule, unscheduled: dict[str, str]
    ) -> tuple[Executable, dict[str, str], tuple[str, ...]]:
        # What a GPU's own pipeline schedules, no other does.
        pipeline = "default" if is_gpu(target) else vm_pipeline()
        native = tvm.compile(mod, target, relax_pipeline=pipeline)
        return native, unscheduled, tuple(name for name in unscheduled if has_sums(mod[name]))

    rest = ScheduleRest(target)
    scheduled = without_empty_constants(rest(coded))
    try:
        return done(scheduled, rest.unscheduled)
    except Exception as err:  # TVM's own, of many kinds; it says seldom of which function
        wrong = {} if stopped(err) else failing(scheduled, target)
        if not wrong:
            raise
    rest = ScheduleRest(target, keep=wrong)
    scheduled = without_empty_constants(rest(coded))
    return done(scheduled, {**rest.unscheduled, **wrong})


def weights_once(native: Executable) -> Executable:
    """Relax stores each weight once as it is."""
    return native


def python_functions(native: Executable) -> tuple[str, ...]:
    """What a built model calls of TVM's Python package, which no other program has."""
    return tuple(sorted(set(re.findall(r"relax\.run\.\w+", native.stats()))))


def session(native: Executable) -> relax.VirtualMachine:
    """A virtual machine on the CPU; 0.27 compiles C sources when it makes one."""
    if _has_sources(getattr(native, "mod", native)):
        check_compiler("to call C sources")
    at_once([partial(_assemble, m) for m in _inside(getattr(native, "mod", native))])
    return relax.VirtualMachine(native, tvm.cpu())


def _inside(module: Module) -> Iterator[Module]:
    """The modules of LLVM that a module of the runtime imports."""
    for inner in module.imports:
        if inner.kind == "llvm":
            yield inner
        yield from _inside(inner)


def _assemble(module: Module) -> None:
    """Have a module make its machine code, as it does when it is first asked for a function: the
    virtual machine asks one kernel after the other, half a second for twenty.
    """
    with suppress(AttributeError):  # no function has this name
        module.get_function("")


def _has_sources(module: Module) -> bool:
    """Whether a module of the runtime is C source, or imports some."""
    return module.kind == "c" or any(map(_has_sources, module.imports))


def calling(
    machine: relax.VirtualMachine, names: Sequence[str], tensors: Sequence[NDArray]
) -> tuple[Callable[[], object], Callable[[], list[np.ndarray]]]:
    """The machine's normal call on tensors that exist already, and what reads its last result."""
    main = machine["main"]
    last: list[Any] = []

    def call() -> None:
        last[:] = [main(*tensors)]

    def outputs() -> list[np.ndarray]:
        (result,) = last
        return [r.numpy() for r in result] if _is_array(result) else [result.numpy()]

    return call, outputs


def _is_array(result: NDArray) -> bool:
    return not hasattr(result, "numpy")


def bound(native: Executable, names: Sequence[str]) -> Callable[[Sequence[NDArray]], list[NDArray]]:
    """`main` of a virtual machine of its own, from tensors to tensors."""
    main = session(native)["main"]

    def call(tensors: Sequence[NDArray]) -> list[NDArray]:
        result = _result(main, tensors)
        return list(result) if _is_array(result) else [result]

    return call


# How many there are, how many there should be, and of what.
_CAST = re.compile(
    r"\((-?\d+) vs\. (-?\d+)\) : ErrorContext\(match_cast, ty=R\.(.*)\)\s+match_cast"
)


def _result(main: PackedFunc, tensors: Sequence[NDArray]) -> NDArray | Sequence[NDArray]:
    """What `main` returns. Of sizes that data decide the virtual machine says by an error of its
    own that they do not fit.
    """
    try:
        return main(*tensors)
    except RuntimeError as err:
        found = _CAST.search(str(err))
        if found is None:
            raise
        size, wanted, ty = found.groups()
        text = f"expected {wanted}, found {size} for {ty.replace('T.', '')}"
        raise InputError(f"a size that is computed: {text}") from err


def bound_arrays(
    native: Executable, names: Sequence[str]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """`main` of a virtual machine of its own, from arrays to views of its results. What lies well
    is read where it lies, all else is copied.
    """
    call_on_tensors = bound(native, names)
    given = [_Input() for _ in names]

    def call(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = zip(given, arrays, strict=True)
        return [view_of(r) for r in call_on_tensors([place.of(a) for place, a in pairs])]

    return call


class _Input:
    """Aligned memory of one input; it stays, unless an array of another shape comes."""

    def __init__(self) -> None:
        self.tensor: Any = None
        self.view: np.ndarray | None = None

    def of(self, array: np.ndarray) -> NDArray:
        """A tensor with these values."""
        if lies_well(array):
            return from_dlpack(array)
        if self.view is None or self.view.shape != array.shape:
            self.tensor = to_tensor(array)
            self.view = _view(self.tensor)
        elif self.view.flags.writeable:
            np.copyto(self.view, array)
        else:  # NumPy 1 gives views to read
            self.tensor.copyfrom(array)
        return self.tensor


def _view(tensor: NDArray) -> np.ndarray | None:
    """A tensor's memory as an array, where NumPy's own dtypes can say what it holds."""
    try:
        return np.from_dlpack(tensor)
    except RuntimeError:  # bfloat16, float8
        return None


def view_of(tensor: NDArray) -> np.ndarray:
    """A tensor as an array, of the same memory; a copy to read where NumPy cannot say what it
    holds.
    """
    view = _view(tensor)
    return read_only(tensor.numpy()) if view is None else view


def copied(value: NDArray) -> np.ndarray:
    """What knows DLPack as a copy to read."""
    return read_only(from_dlpack(value).numpy())


def to_tensor(array: np.ndarray) -> NDArray:
    """A TVM tensor, aligned: TVM 0.27 takes NumPy arrays as they lie in memory, and its kernels
    crash on those that are not 64-byte aligned.
    """
    return tensor(np.asarray(array, order="C"))
