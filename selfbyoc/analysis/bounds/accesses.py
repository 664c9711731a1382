"""A lowered function as its accesses: which buffer, at which index, in which loops, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...tir.lanes import found_in
from ...tvm import param_buffers, region_buffer, tir
from ...tvm.rewrite import is_conditional, substitute
from ...tvm.types import Buffer, PrimExpr, PrimFunc, Stmt
from .expressions import LOADS, bytes_of, is_index, is_zero, parts

PARALLEL = 1  # ForKind
DATA = "its index is data"  # of an access: within limits, or nothing can be said
_LEAVES = ("Var", "SizeVar", "IntImm", "FloatImm", "StringImm")


@dataclass(eq=False)
class Root:
    """Memory: an argument (by its position), or a workspace."""

    name: str
    bytes: int
    position: int | None
    loops: tuple[Loop, ...]  # around its allocation


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop around an access."""

    var: PrimExpr
    first: PrimExpr
    extent: PrimExpr
    is_parallel: bool


@dataclass(frozen=True, eq=False)
class Access:
    """A load or a store of one element or a vector, by a flat index."""

    root: Root
    buffer: Buffer
    raw: PrimExpr  # the index as it stands, and
    index: PrimExpr  # with values for the names of a let
    loops: tuple[Loop, ...]
    guards: tuple[PrimExpr, ...]  # conditions around it
    elements: int  # of the buffer, in the access's dtype
    value: PrimExpr | None = None  # of a store
    open: str = ""  # why nothing can be said of it

    @property
    def is_store(self) -> bool:
        """Whether it writes."""
        return self.value is not None


@dataclass(frozen=True)
class Place:
    """Where the walk is."""

    loops: tuple[Loop, ...] = ()
    guards: tuple[PrimExpr, ...] = ()

    def under(self, *guards: PrimExpr) -> Place:
        """The same, where these hold too."""
        return Place(self.loops, (*self.guards, *guards))


@dataclass
class Accesses:
    """All accesses of a lowered function, and what is no access but may touch memory."""

    roots: list[Root] = field(default_factory=list)
    found: list[Access] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)  # that take the address of a buffer


def accesses(lowered: PrimFunc, source: PrimFunc) -> Accesses:
    """The accesses of a function just before it becomes machine code; `source` is the same
    function before it was lowered, whose parameters are the arguments.
    """
    walk = Walk([b for b in param_buffers(source) if hasattr(b, "shape")], {}, {}, Accesses())
    for position, buffer in enumerate(param_buffers(lowered)):
        if hasattr(buffer, "data"):  # 0.17; in 0.27 the arguments are unpacked in the body
            walk.argument(buffer.data, position)
    walk.statement(lowered.body, Place())
    return walk.result


@dataclass
class Walk:
    """Goes through a lowered function once; analysis/gpu has one that knows threads."""

    arguments: list[Buffer]
    roots: dict[Any, Root]  # by the variable of the memory
    lets: dict[Any, Any]
    result: Accesses

    def argument(self, var: PrimExpr, position: int) -> None:
        buffer = self.arguments[position]
        self._add(var, Root(str(buffer.name), bytes_of(buffer.shape, buffer.dtype), position, ()))

    def _add(self, var: PrimExpr, root: Root) -> None:
        self.roots[var] = root
        self.result.roots.append(root)

    def statement(self, stmt: Stmt, place: Place) -> None:
        """Everything in a statement."""
        kind = type(stmt).__name__
        visit = getattr(self, f"_{kind}", None)
        if visit is not None:
            visit(stmt, place)
            return
        if kind != "Return":
            self.result.calls.append(f"a statement {kind}")

    def _SeqStmt(self, stmt: Stmt, place: Place) -> None:
        for each in stmt.seq:
            self.statement(each, place)

    def _For(self, stmt: Stmt, place: Place) -> None:
        first, extent = self._plain(stmt.min), self._plain(stmt.extent)
        loop = Loop(stmt.loop_var, first, extent, int(stmt.kind) == PARALLEL)
        self.statement(stmt.body, Place((*place.loops, loop), place.guards))

    def _IfThenElse(self, stmt: Stmt, place: Place) -> None:
        self._expression(stmt.condition, place)
        condition = self._plain(stmt.condition)
        self.statement(stmt.then_case, place.under(condition))
        if stmt.else_case is not None:
            self.statement(stmt.else_case, place.under(tir.Not(condition)))

    def _LetStmt(self, stmt: Stmt, place: Place) -> None:
        self._Bind(stmt, place)
        self.statement(stmt.body, place)

    def _Bind(self, stmt: Stmt, place: Place) -> None:
        self._expression(stmt.value, place)
        if is_index(stmt.value):
            self.lets[stmt.var] = self._plain(stmt.value)

    def _AttrStmt(self, stmt: Stmt, place: Place) -> None:
        self.statement(stmt.body, place)

    def _AssertStmt(self, stmt: Stmt, place: Place) -> None:
        self._expression(stmt.condition, place)
        if hasattr(stmt, "body"):
            self.statement(stmt.body, place)

    def _Evaluate(self, stmt: Stmt, place: Place) -> None:
        self._expression(stmt.value, place)

    def _Allocate(self, stmt: Stmt, place: Place) -> None:
        name, size = str(stmt.buffer_var.name), bytes_of(stmt.extents, stmt.dtype)
        self._add(stmt.buffer_var, Root(name, size, None, place.loops))
        self.statement(stmt.body, place)

    def _AllocBuffer(self, stmt: Stmt, place: Place) -> None:
        buffer = stmt.buffer
        size = bytes_of(buffer.shape, buffer.dtype)
        self._add(buffer, Root(str(buffer.name), size, None, place.loops))

    def _DeclBuffer(self, stmt: Stmt, place: Place) -> None:
        if hasattr(stmt, "body"):  # 0.17
            self.statement(stmt.body, place)
            return
        base = self.roots.get(stmt.data.args[0]) if stmt.data.args else None
        if base is None:  # an argument, taken out of what was passed
            taken = sum(root.position is not None for root in self.result.roots)
            self.argument(stmt.buffer, taken)
        else:
            self.roots[stmt.buffer] = base

    def _BufferStore(self, stmt: Stmt, place: Place) -> None:
        self._expression(stmt.value, place)
        self._access(stmt.buffer, stmt.indices, place, stmt.value)

    def _expression(self, expr: PrimExpr, place: Place) -> None:
        kind = type(expr).__name__
        if kind in _LEAVES:
            return
        if kind in LOADS:
            self._access(region_buffer(expr), expr.indices, place, None)
        elif kind == "Call":
            self._call(expr, place)
        else:
            for part in parts(expr, kind):
                self._expression(part, place)

    def _call(self, call: PrimExpr, place: Place) -> None:
        name = str(getattr(call.op, "name", call.op)).rpartition(".")[2]
        if name == "prefetch":  # a hint; an address that nobody may touch is none
            return
        if is_conditional(call):
            self._expression(call.args[0], place)
            condition = self._plain(call.args[0])
            self._expression(call.args[1], place.under(condition))
            self._expression(call.args[2], place.under(tir.Not(condition)))
            return
        if name in ("address_of", "tvm_access_ptr", "call_extern", "tvm_call_packed"):
            self.result.calls.append(f"{name} {str(call)[:120]}")
        for arg in call.args:
            if type(arg).__name__ in ("BufferRegion", "StringImm"):
                continue
            self._expression(arg, place)

    def _access(
        self, buffer: Buffer, indices: Sequence[PrimExpr], place: Place, value: PrimExpr | None
    ) -> None:
        for index in indices:
            self._expression(index, place)
        root = self.roots.get(buffer) or self.roots.get(getattr(buffer, "data", None))
        if root is None:
            self.result.calls.append(f"memory of unknown size: {buffer.name}")
            return
        why, index = "", self._plain(indices[0])
        if len(indices) != 1 or not is_zero(getattr(buffer, "elem_offset", 0)):
            why = "its index is not flat"
        elif found_in(index, lambda node: type(node).__name__ in LOADS):
            why = DATA
        elements = root.bytes // bytes_of((), buffer.dtype)
        self.result.found.append(
            Access(root, buffer, indices[0], index, place.loops, place.guards, elements, value, why)
        )

    def _plain(self, expr: PrimExpr) -> PrimExpr:
        """An expression of loop variables alone."""
        return substitute(expr, self.lets) if self.lets else expr
