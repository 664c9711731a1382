"""A scheduled function as a GPU gets it: memory, launches in order, and source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...errors import LoweringError, reason
from ...machine.host import check_compiles
from ...tvm import param_buffers, walk
from ...tvm.bounds import memory_of
from ...tvm.config import kernel_config
from ...tvm.gpu import called, memory_behind, split
from ...tvm.types import PrimExpr, PrimFunc, Stmt, Target, TirNode
from ..bounds.expressions import bytes_of

AXES = ("x", "y", "z")
Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """One call of a device function (`__global__`)."""

    name: str
    func: PrimFunc  # its PrimFunc
    memory: tuple[int, ...]  # its arguments, by number: first the function's, then workspaces
    grid: Extents
    block: Extents

    @property
    def threads(self) -> int:
        """Of a thread block."""
        return prod(self.block)


@dataclass(frozen=True)
class Lowered:
    """All that a GPU needs of a function."""

    target: Target
    source: str
    launches: tuple[Launch, ...]
    arguments: int
    workspaces: tuple[int, ...]  # bytes of each, in global memory


def lowered(func: PrimFunc, target: Target) -> Lowered:
    """A finished function (tir/lowering.py) through all passes of TVM."""
    check_compiles(target)
    func = func.with_attr("global_symbol", "kernel")
    try:
        parts = split(func, target, kernel_config(target))
    except Exception as err:  # TVM raises plain errors of many types
        raise LoweringError(f"TVM could not lower it for {target.kind}: {reason(err)}") from err
    host = _Host([memory_of(buffer) for buffer in param_buffers(parts.host)])
    host.statement(parts.host.body)
    launches = tuple(_launch(name, parts.device[name], memory) for name, memory in host.calls)
    return Lowered(target, parts.source, launches, host.arguments, tuple(host.workspaces))


def _launch(name: str, func: PrimFunc, memory: tuple[int, ...]) -> Launch:
    if len(memory) != len(func.params):
        raise LoweringError(f"{name} takes more than memory: a size that is not known")
    return Launch(name, func, memory, *launch_extents(func))


def launch_extents(func: PrimFunc) -> tuple[Extents, Extents]:
    """The grid and the thread block of a device function."""
    found: dict[str, int] = {}

    def visit(node: TirNode) -> None:
        if type(node).__name__ == "AttrStmt" and str(node.attr_key) == "thread_extent":
            found[str(node.node.thread_tag)] = int(node.value)

    walk(func.body, visit)
    if not found:
        raise LoweringError(f"{func.attrs['global_symbol']} is bound to no threads")
    grid, block = (
        tuple(found.get(f"{index}.{axis}", 1) for axis in AXES)
        for index in ("blockIdx", "threadIdx")
    )
    return grid, block  # type: ignore[return-value]


class _Host:
    """Reads what is left for the host: allocations, views and calls, one after the other."""

    def __init__(self, arguments: Sequence[PrimExpr]) -> None:
        self.arguments = len(arguments)
        self.number = {memory: n for n, memory in enumerate(arguments)}
        self.workspaces: list[int] = []
        self.calls: list[tuple[str, tuple[int, ...]]] = []

    def statement(self, stmt: Stmt) -> None:
        """Everything in a statement."""
        kind = type(stmt).__name__
        visit = getattr(self, f"_{kind}", None)
        if visit is None:
            raise LoweringError(f"the host runs a {kind} between kernels: bind it to threads")
        visit(stmt)
        if hasattr(stmt, "body"):
            self.statement(stmt.body)

    def _SeqStmt(self, stmt: Stmt) -> None:
        for each in stmt.seq:
            self.statement(each)

    def _AttrStmt(self, stmt: Stmt) -> None:
        """Nothing of it concerns launches."""

    def _AssertStmt(self, stmt: Stmt) -> None:
        """Arguments are checked by whoever calls."""

    def _Allocate(self, stmt: Stmt) -> None:
        self._workspace(stmt.buffer_var, bytes_of(stmt.extents, stmt.dtype))

    def _AllocBuffer(self, stmt: Stmt) -> None:
        self._workspace(stmt.buffer, bytes_of(stmt.buffer.shape, stmt.buffer.dtype))

    def _workspace(self, memory: PrimExpr, size: int) -> None:
        self.number[memory] = self.arguments + len(self.workspaces)
        self.workspaces.append(size)

    def _DeclBuffer(self, stmt: Stmt) -> None:
        """0.27: a view."""
        if hasattr(stmt, "data"):
            self.number[stmt.buffer] = self.number[memory_behind(stmt.data)]

    def _Evaluate(self, stmt: Stmt) -> None:
        found = called(stmt.value) if type(stmt.value).__name__ == "Call" else None
        if found is None:
            return
        name, memory = found
        self.calls.append((name, tuple(self.number[m] for m in memory if m in self.number)))
