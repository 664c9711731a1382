"""Relay: the virtual machine, for models with extents of `Any`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm.runtime.vm import VirtualMachine

from ....errors import InputError
from ....tvm import tvm
from ....tvm.symbolic import INPUT_ERROR
from ....tvm.types import Executable, NDArray
from ...alignment import lies_well


def is_machine(native: Executable) -> bool:
    """Whether a library runs on the virtual machine."""
    return getattr(native, "type_key", "") == "VMExecutable"


def machine(native: Executable) -> VirtualMachine:
    """A virtual machine on the CPU."""
    return VirtualMachine(native, tvm.cpu())


def calling(
    machine: VirtualMachine, tensors: Sequence[NDArray]
) -> tuple[Callable[[], object], Callable[[], list[np.ndarray]]]:
    """The machine's normal call on tensors that exist already, and what reads its last result."""
    last: list[Any] = []

    def call() -> None:
        last[:] = [_result(machine, tensors)]

    return call, lambda: [tensor.numpy() for tensor in _tensors(last[0])]


def bound(native: Executable) -> Callable[[Sequence[NDArray]], list[NDArray]]:
    """`main` of a virtual machine of its own, from tensors to tensors."""
    own = machine(native)
    return lambda tensors: _tensors(_result(own, tensors))


def bound_arrays(
    native: Executable,
    to_tensor: Callable[[np.ndarray], NDArray],
    view_of: Callable[[NDArray], np.ndarray],
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """The same from arrays to views of its results. What lies well is read where it lies, all else
    is copied.
    """
    call = bound(native)

    def call_on_arrays(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = [tvm.nd.from_dlpack(a) if lies_well(a) else to_tensor(a) for a in arrays]
        return [view_of(result) for result in call(given)]

    return call_on_arrays


def _result(machine: VirtualMachine, tensors: Sequence[NDArray]) -> NDArray | Sequence[NDArray]:
    """What `main` returns. 0.17 has but one error for what a kernel asserts: ours say theirs."""
    try:
        return machine.invoke("main", *tensors)
    except tvm.TVMError as err:
        _, ours, text = str(err).rpartition(INPUT_ERROR)
        if not ours:
            raise
        raise InputError(text.strip()) from err


def _tensors(result: NDArray) -> list[NDArray]:
    """What `main` returns: one tensor, or a tuple of them."""
    return [result] if isinstance(result, tvm.nd.NDArray) else list(result)
