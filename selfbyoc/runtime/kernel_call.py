"""One call of a kernel, as an executor makes it: to be made again by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..tvm.types import NDArray


@dataclass(frozen=True)
class KernelCall:
    """`run` makes the call again, on the executor's memory: all calls, made in order, compute what
    the model computes. `call_nothing` calls TVM's empty function alike: what it costs to call.

    `arguments` are all tensors, `results` those that it writes, `weights` those that are constants.
    On Relay they are copies, as they were after the call; on Relax the executor's own.
    """

    name: str
    run: Callable[[], object]
    call_nothing: Callable[[], object]
    arguments: tuple[NDArray, ...]
    results: tuple[NDArray, ...]
    weights: tuple[NDArray, ...]
