"""The kernels that a virtual machine calls, in order: caught in one call of the model."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from ...tvm import tvm
from ...tvm.types import Executable, NDArray
from ..kernel_call import KernelCall

ALLOCATE = "vm.builtin.alloc_tensor"


def kernel_calls(
    native: Executable, names: Sequence[str], tensors: Sequence[NDArray]
) -> list[KernelCall]:
    """Its own builtins are no kernels: they allocate, and look at memory in another shape."""
    machine = relax.VirtualMachine(native, tvm.cpu())
    caught = _Caught(tensors)
    machine.set_instrument(caught)
    caught.last = machine["main"](*tensors)
    return caught.calls


class _Caught:
    """What the machine calls before and after each of its calls."""

    def __init__(self, inputs: Sequence[NDArray]) -> None:
        self.calls: list[KernelCall] = []
        self._changing = {_address(tensor) for tensor in inputs}
        self.last: Any = None
        self._nothing = tvm.get_global_func("testing.nop")
        self._before: list[int] = []
        self._fresh: set[int] = set()

    def __call__(self, function: Any, name: str, before: bool, made: Any, *args: Any) -> None:
        tensors = [a for a in args if isinstance(a, tvm.runtime.Tensor)]
        if name == ALLOCATE and not before:
            self._fresh.add(_address(made))
        # What is called with anything else, or is a function of the machine, calls kernels itself.
        if name.startswith("vm.") or len(tensors) < len(args) or not tensors:
            return
        if before:
            self._before = [_sum_of(t) for t in tensors]
            return
        results = [made] if isinstance(made, tvm.runtime.Tensor) else self._written(tensors)
        self._changing |= {_address(tensor) for tensor in results}
        self._fresh -= self._changing
        self.calls.append(
            KernelCall(
                str(name), partial(function, *args), partial(self._nothing, *args),
                tuple(tensors), tuple(results),
                tuple(t for t in tensors if _address(t) not in self._changing),
            )
        )  # fmt: skip

    def _written(self, tensors: Sequence[NDArray]) -> list[NDArray]:
        """A result is passed last; a function of several results writes more of them: memory that
        nobody has written since it was allocated, where an earlier call of the model may have left
        the same numbers, or memory that is another's no more.
        """
        pairs = zip(tensors[:-1], self._before, strict=False)
        others = [t for t, old in pairs if _address(t) in self._fresh or _sum_of(t) != old]
        return [*others, tensors[-1]]


def _sum_of(tensor: NDArray) -> int:
    return zlib.adler32(np.ascontiguousarray(tensor.numpy()).view(np.uint8).data)


def _address(tensor: NDArray) -> int:
    return int(tensor.data_ptr())
