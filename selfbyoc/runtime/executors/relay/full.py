"""Relay: the graph executor; the virtual machine where extents are `Any`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....errors import InputError
from ....tvm import load_shared, tensor, tvm  # first: an import of tvm alone is another program's

# isort: split
from tvm.contrib import graph_executor
from tvm.runtime.vm import VirtualMachine

from ....tvm.types import Executable, Module, NDArray, PackedFunc
from ...alignment import lies_well, read_only
from . import vm
from .vm import is_machine, machine

if TYPE_CHECKING:
    import torch

Session: TypeAlias = graph_executor.GraphModule | VirtualMachine

from_dlpack, Tensor = tvm.nd.from_dlpack, tvm.nd.NDArray


def load_module(path: str) -> Module:
    """A file as a module, by this very name."""
    return load_shared(path)


def is_runnable(native: Module) -> bool:
    """Whether a file has a graph executor, or a virtual machine."""
    return is_machine(native) or bool(native.implements_function("default"))


def session(native: Executable) -> Session:
    """A graph executor of the library on the CPU, or its virtual machine."""
    if is_machine(native):
        return machine(native)
    return graph_executor.GraphModule(native["default"](tvm.cpu()))


def calling(
    module: Session, names: Sequence[str], tensors: Sequence[NDArray]
) -> tuple[Callable[[], object], Callable[[], list[np.ndarray]]]:
    """The executor's normal call on inputs that are set once, and what reads its last result."""
    if isinstance(module, VirtualMachine):
        return vm.calling(module, tensors)
    for name, value in zip(names, tensors, strict=True):
        module.set_input(name, value)
    count = module.get_num_outputs()
    return module.run, lambda: [module.get_output(i).numpy() for i in range(count)]


def bound(native: Executable, names: Sequence[str]) -> Callable[[Sequence[NDArray]], list[NDArray]]:
    """A graph executor of its own, from tensors to tensors: it reads the inputs where they are, and
    the outputs are its own memory, until the next call.
    """
    if is_machine(native):
        return vm.bound(native)
    execute, put, given, found = _executor(native, names)
    passed = _passed(given, found)
    last: list[Any] = [None] * len(given)

    def call(tensors: Sequence[NDArray]) -> list[NDArray]:
        if len(tensors) != len(given):
            raise InputError(f"expected tensors for {list(names)}, found {len(tensors)}")
        for n, value in enumerate(tensors):
            if last[n] is not value:
                _check_type(names[n], value, given[n])
                last[n] = value  # also kept alive: the executor holds but an address
                if n not in passed:
                    put(n, value)
            if n in passed:
                given[n].copyfrom(value)
        execute()
        return list(found)

    return call


def _check_type(name: str, tensor: NDArray, like: NDArray) -> None:
    """TVM 0.17 looks at the shape alone where it reads a tensor, and reads on past the end of
    smaller elements; at the number of bytes alone where it copies one.
    """
    if not isinstance(tensor, type(like)):
        raise InputError(
            f"input {name!r}: expected a TVM tensor (session.tensor makes one of an array), found "
            f"{type(tensor).__name__}"
        )
    if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
        raise InputError(
            f"input {name!r}: expected {like.dtype}{list(like.shape)}, found "
            f"{tensor.dtype}{list(tensor.shape)}"
        )


def bound_arrays(
    native: Executable, names: Sequence[str]
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """A graph executor of its own, from arrays to views of its results. What lies well is read
    where it lies, all else is copied.
    """
    if is_machine(native):
        return vm.bound_arrays(native, to_tensor, view_of)
    execute, put, given, found = _executor(native, names)
    views, results = ([_view(tensor) for tensor in tensors] for tensors in (given, found))
    passed = _passed(given, found)
    elsewhere: dict[int, Any] = {}  # inputs that are read where they lie, kept alive

    def call(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        for n, array in enumerate(arrays):
            if n not in passed and lies_well(array):
                elsewhere[n] = from_dlpack(array)
                put(n, elsewhere[n])
                continue
            if elsewhere.pop(n, None) is not None:
                # By now the executor's own tensor has the other address; the view of it has not.
                put(n, from_dlpack(views[n]))
            np.copyto(views[n], array)
        execute()
        return results

    return call


def _passed(given: Sequence[NDArray], found: Sequence[NDArray]) -> set[int]:
    """Inputs that are outputs too: the executor hands out its own memory, which must be filled."""
    return {n for n, i in enumerate(given) if any(_address(i) == _address(o) for o in found)}


def _executor(
    native: Executable, names: Sequence[str]
) -> tuple[PackedFunc, Callable[[int, NDArray], object], list[NDArray], list[NDArray]]:
    """Of a graph executor: what runs it, what sets an input's address, its inputs and outputs."""
    module = native["default"](tvm.cpu())
    places = [int(module["get_input_index"](name)) for name in names]
    given = [module["get_input"](place) for place in places]
    found = [module["get_output"](i) for i in range(int(module["get_num_outputs"]()))]
    zero_copy = module["set_input_zero_copy"]
    return module["run"], lambda n, value: zero_copy(places[n], value), given, found


def _address(tensor: NDArray) -> int:
    memory = tensor.handle.contents
    return int(memory.data or 0) + int(memory.byte_offset)


def _view(tensor: NDArray) -> np.ndarray:
    """A tensor's memory as an array that keeps it alive. TVM 0.17's from_dlpack makes one that is
    read-only, and cannot do bool.
    """
    dtype = np.dtype(tensor.dtype)
    size = math.prod(tensor.shape) * dtype.itemsize
    memory = (ctypes.c_byte * size).from_address(_address(tensor))
    memory.owner = tensor
    return np.ndarray(tensor.shape, dtype, buffer=memory)


def to_tensor(array: np.ndarray) -> NDArray:
    """A TVM tensor, aligned: TVM allocates and copies."""
    return tensor(np.asarray(array, order="C"))


def view_of(tensor: NDArray) -> np.ndarray:
    """A tensor as an array, of the same memory; a copy to read where that has strides."""
    return read_only(tensor.numpy()) if tensor.handle.contents.strides else _view(tensor)


def copied(value: torch.Tensor) -> np.ndarray:
    """What knows DLPack as a copy to read."""
    return read_only(from_dlpack(value).numpy())
