"""Memory of constant size, where a symbolic size bounds it."""

from __future__ import annotations

from typing import Any

from ..._tvm import Analyzer, storage_passes, tir, tvm
from ..._tvm_symbolic import with_shapes
from .tails import with_tails

MOST = 1 << 16  # elements


def with_constant_allocations(func: Any) -> Any:
    """A lowered PrimFunc whose buffers of min(size, 4) rows have 4: only memory of a constant size
    becomes registers, or lies on the stack.
    """

    def constant(extent: Any) -> Any:
        if isinstance(extent, (int, tir.IntImm)):
            return extent
        most = int(Analyzer().const_int_bound(extent).max_value)
        return tir.IntImm("int32", most) if most <= MOST else extent

    return with_shapes(func, constant)


def placed(func: Any) -> Any:
    """A scheduled PrimFunc with its buffers where they are needed, and of constant size where that
    is bounded: TVM's own pipeline cannot lower others.
    """
    mod = tvm.transform.Sequential(storage_passes())(tvm.IRModule({"main": func}))
    return with_tails(with_constant_allocations(mod["main"]))
