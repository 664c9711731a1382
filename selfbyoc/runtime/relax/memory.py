"""Relax: what is to be seen of a module while TVM compiles it: the memory between kernels, and what
the virtual machine's code is made of.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from ...tvm import tir, tvm
from ...tvm.types import Expr, Function, PrimExpr

_ALLOCATES = "relax.memory.alloc_storage"


@tvm.instrument.pass_instrument
class Watched:
    """Watches tvm.compile at work."""

    def __init__(self) -> None:
        self.bytes: int | None = None  # where all is known when compiling
        self._lowered: tvm.IRModule | None = None  # after the last pass

    def run_after_pass(self, mod: tvm.IRModule, info: tvm.transform.PassInfo) -> None:
        """What TVM calls after each pass."""
        if str(info.name).endswith("StaticPlanBlockMemory"):
            storages = [size for func in mod.functions.values() for size in _storages(func)]
            is_known = all(isinstance(size, tir.IntImm) for size in storages)
            self.bytes = sum(map(int, storages)) if is_known else None
        if str(info.name).endswith("AttachGlobalSymbol"):
            self._lowered = mod

    def lowered(self) -> tvm.IRModule | None:
        """The module after the last pass, once: TVM keeps its instruments for ever, and the kernels
        would be kept with it.
        """
        found, self._lowered = self._lowered, None
        return found


def _storages(func: Function) -> list[PrimExpr]:
    """The sizes of the storages that a function allocates."""
    found: list[Any] = []

    def visit(node: Expr) -> None:
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == _ALLOCATES:
            found.extend(node.args[0].values)  # one: its bytes

    if isinstance(func, relax.Function):
        relax.analysis.post_order_visit(func, visit)
    return found
