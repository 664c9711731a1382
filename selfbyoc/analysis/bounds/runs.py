"""A kernel run where bounds show: between fences, with poisoned workspaces, under TVM's checker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tir.lanes import found_in, lanes_of
from ...tir.lowering import at_last, machine_code
from ...tvm import get_func, make_target, param_buffers, target_dict
from ...tvm.bounds import checker_config, memory_of, with_bound_checks, with_poison
from ...tvm.config import kernel_config
from ...tvm.rewrite import is_conditional
from ...tvm.types import Buffer, Module, PrimFunc, Target
from .accesses import Access, accesses
from .fences import as_tensor, fenced
from .records import FAILED, LEFT_OUT, PASSED, Run

SYMBOL = "kernel"
QUICKLY = 0
POISONS = (0xFF, 0x7B)  # bytes of the outputs before: NaN, and numbers
Function = Callable[..., Any]


@dataclass(frozen=True)
class Kernel:
    """A scheduled function, its lowered form and its machine code."""

    func: PrimFunc
    lowered: PrimFunc
    function: Function
    target: Target
    inputs: Sequence[np.ndarray]
    outputs: int

    def call(self, function: Function, at_end: bool, poison: int) -> list[np.ndarray]:
        """Run it on fenced copies of the inputs; -> its outputs."""
        arrays = []
        for n, buffer in enumerate(param_buffers(self.func)):
            shape = tuple(int(extent) for extent in buffer.shape)
            arrays.append(fenced(shape, str(buffer.dtype), at_end))
            if n < len(self.inputs):
                arrays[-1][...] = self.inputs[n]
            else:
                arrays[-1].view("uint8")[...] = poison
        function(*map(as_tensor, arrays))
        return arrays[-self.outputs :]


def compiled(func: PrimFunc, target: Target) -> tuple[PrimFunc, PrimFunc, Module]:
    """A finished function by the name that it is called by, lowered, and its machine code."""
    func = func.with_attr("global_symbol", SYMBOL)
    lowered: list[Any] = []

    def last(made: PrimFunc) -> PrimFunc:
        lowered.append(at_last(made))
        return lowered[-1]

    module = machine_code(func, SYMBOL, target, last)
    return func, lowered[-1], module


def built(func: PrimFunc, target: Target, inputs: Sequence[np.ndarray], outputs: int) -> Kernel:
    """A finished function that can be called, and what it was made of."""
    func, lowered, module = compiled(func, target)
    return Kernel(func, lowered, get_func(module, SYMBOL), target, inputs, outputs)


def _fence_after(kernel: Kernel) -> Run:
    """Pages without access after each argument; and outputs full of other bytes the second time."""
    one, other = (kernel.call(kernel.function, True, poison) for poison in POISONS)
    return Run("fence after", *_same(one, other))


def _fence_before(kernel: Kernel) -> Run:
    kernel.call(kernel.function, False, POISONS[0])
    return Run("fence before", PASSED)


def _same(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> tuple[str, str]:
    """Two runs on the same inputs, with other bytes in all other memory, must be the same bits."""
    for n, (a, b) in enumerate(zip(one, other, strict=True)):
        parts = [np.ascontiguousarray(x).view("uint8").reshape(x.size, -1) for x in (a, b)]
        differ = (parts[0] != parts[1]).any(1)
        if differ.any():
            at = int(differ.argmax())
            where = [int(i) for i in np.unravel_index(at, a.shape)]
            text = (
                f"{int(differ.sum())} elements of output {n} depend on what lay there before, the "
                f"first is {where} ({a.flat[at]}, then {b.flat[at]})"
            )
            return FAILED, text
    return PASSED, ""


def _workspaces(kernel: Kernel) -> Run:
    """Each workspace is full of large numbers before its first use, then of others."""
    seen = accesses(kernel.lowered, kernel.func)
    if all(root.position is not None for root in seen.roots):
        return Run("workspaces", LEFT_OUT, "it has none")

    def results(sign: int) -> list[np.ndarray]:
        def last(made: PrimFunc) -> PrimFunc:
            return with_poison(at_last(made), sign)

        module = machine_code(kernel.func, SYMBOL, kernel.target, last)
        # Zeros before: what an output lacks is not the question here.
        return kernel.call(get_func(module, SYMBOL), False, 0)

    return Run("workspaces", *_same(results(1), results(-1)))


def _bound_checker(kernel: Kernel) -> Run:
    """TVM's own checker, on the same loops without vectors."""
    left: list[int] = []

    def last(made: PrimFunc) -> PrimFunc:
        found = accesses(made, kernel.func).found
        left.append(sum(_is_unchecked(access) for access in found if access.is_store))
        left.append(sum(access.is_store for access in found))
        return with_bound_checks(made, _buffers(found))

    # Optimised, so many assertions take LLVM up to a minute.
    quickly = make_target({**target_dict(kernel.target), "opt-level": QUICKLY})
    module = machine_code(
        kernel.func, SYMBOL, quickly, last, {**kernel_config(quickly), **checker_config()}
    )
    try:
        kernel.call(get_func(module, SYMBOL), False, POISONS[0])
    except Exception as err:  # TVM 0.27 raises what Python has
        if "OUT OF THE BOUNDS" not in str(err):
            raise
        return Run("bound checker", FAILED, "an assertion of TVM's bound checker fails")
    note = f"{left[0]} of {left[1]} stores are not checked" if left[0] else ""
    return Run("bound checker", LEFT_OUT if left[0] == left[1] else PASSED, note)


def _is_unchecked(store: Access) -> bool:
    """TVM's checker leaves out a store of a conditional value, and we leave out vectors: it takes
    the last index of a vector for one more than it is.
    """
    return bool(found_in(store.value, is_conditional)) or lanes_of(store.index) > 1


def _buffers(found: Sequence[Access]) -> list[tuple[Buffer, int]]:
    """The buffers that are accessed by elements alone, with their numbers of elements. Memory that
    holds bytes where floats were is left out: 0.17 counts it in elements of the first type.
    """
    chosen: dict[Any, tuple[Any, int]] = {}
    left_out = {memory_of(access.buffer) for access in found if lanes_of(access.index) > 1}
    for access in found:
        memory = memory_of(access.buffer)
        buffer, _ = chosen.setdefault(memory, (access.buffer, access.elements))
        if buffer.dtype != access.buffer.dtype:
            left_out.add(memory)
    return [value for memory, value in chosen.items() if memory not in left_out]


RUNS: Mapping[str, Callable[[Kernel], Run]] = {
    "fence after": _fence_after,
    "fence before": _fence_before,
    "workspaces": _workspaces,
    "bound checker": _bound_checker,
}
