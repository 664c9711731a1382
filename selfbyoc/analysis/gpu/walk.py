"""A device function as its accesses and barriers: in which loops, under which conditions.

Threads and blocks are loops here: a warp is 32 turns of them that run at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...tvm import scope_of, tir
from ...tvm.gpu import memory_behind
from ...tvm.types import PrimExpr, PrimFunc, Stmt
from ..bounds.accesses import Access, Accesses, Loop, Place, Root, Walk

BARRIER, SHUFFLE = "barrier", "shuffle"
# Of the threads of a block, and of the lanes of a warp.
_SYNCS = {
    "tvm_storage_sync": BARRIER,
    "tvm_warp_shuffle": SHUFFLE,
    "tvm_warp_shuffle_down": SHUFFLE,
    "tvm_warp_shuffle_up": SHUFFLE,
    "tvm_warp_shuffle_xor": SHUFFLE,
}
_WARP = ("warp", "local")  # a barrier of these scopes is no `__syncthreads`


@dataclass(frozen=True)
class Sync:
    """A point that all threads of a block, or all lanes of a warp, must reach together."""

    kind: str
    place: Place
    after: tuple[Place, ...]  # where threads have returned before
    number: int  # of accesses that stand before it


@dataclass
class Device:
    """All that a device function does to memory, and where it waits."""

    accesses: list[Access]
    roots: list[Root]
    syncs: list[Sync]
    threads: Mapping[str, Loop]  # by tag: threadIdx.x, ...


def device(func: PrimFunc) -> Device:
    """A device function as TVM splits it (`tvm.gpu.split`)."""
    walk = _DeviceWalk([], {}, {}, Accesses())
    for param in func.params:
        walk.argument(param, 0)
    walk.statement(func.body, Place())
    return Device(walk.result.found, walk.result.roots, walk.syncs, walk.threads)


def scope(access: Access) -> str:
    """Where the memory is: shared, global, local, ..."""
    return scope_of(access.buffer).partition(".")[0]


@dataclass
class _DeviceWalk(Walk):
    threads: dict[str, Loop] = field(default_factory=dict)
    syncs: list[Sync] = field(default_factory=list)
    returned: list[Place] = field(default_factory=list)

    def argument(self, var: PrimExpr, position: int) -> None:
        """Memory that was handed in, of a size that is not said."""
        self._add(var, Root(str(var.name), 0, position, ()))

    def _AttrStmt(self, stmt: Stmt, place: Place) -> None:
        if str(stmt.attr_key) == "thread_extent":
            tag, var = str(stmt.node.thread_tag), stmt.node.var
            if tag not in self.threads:
                self.threads[tag] = Loop(var, tir.const(0), stmt.value, True)
            self.lets[var] = self.threads[tag].var  # TVM may say it again, by another variable
            if all(loop is not self.threads[tag] for loop in place.loops):
                place = Place((*place.loops, self.threads[tag]), place.guards)
        self.statement(stmt.body, place)

    def _DeclBuffer(self, stmt: Stmt, place: Place) -> None:
        if hasattr(stmt, "body"):  # 0.17, which knows memory by the variable of its address
            self.statement(stmt.body, place)
            return
        self.roots[stmt.buffer] = self.roots[memory_behind(stmt.data)]

    def _Return(self, stmt: Stmt, place: Place) -> None:
        self.returned.append(place)

    def _call(self, call: PrimExpr, place: Place) -> None:
        name = str(getattr(call.op, "name", call.op)).rpartition(".")[2]
        if name in ("ret", "thread_return"):
            self.returned.append(place)
        kind = _SYNCS.get(name)
        if kind == BARRIER and str(call.args[0].value) in _WARP:
            kind = None
        if kind is not None:
            before = len(self.result.found)
            self.syncs.append(Sync(kind, place, tuple(self.returned), before))
        super()._call(call, place)
