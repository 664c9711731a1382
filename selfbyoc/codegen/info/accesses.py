"""How the blocks of a function index its buffers: what layouts are read off.

Index expressions are plain data, so that they can be kept in an attribute (index_data.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...tvm import dtype_of, is_reduction, param_buffers, region_buffer, tir, walk
from ...tvm.types import Buffer, Expr, PrimExpr, PrimFunc, Stmt, TirNode
from .guarded import LOADS, Guarded
from .index_data import encoded

OP_LABEL = "tefuse.op"  # annotation of a block: "<op>:<index of the block when recorded>"

Extent = int | str | None  # a symbol's name; None for what is neither
_BLOCKS = ("Block", "SBlock")


@dataclass(frozen=True)
class Access:
    """One place where a block reads or writes; `index` is None where it cannot be data."""

    buffer: int
    index: tuple[Expr, ...] | None


@dataclass(frozen=True)
class BlockAccesses:
    """One block: its axes as (name, extent, reduces), and all its accesses in order.

    `is_leaf` says that no block is inside it; `copies` that it stores what it loads, unchanged.
    """

    name: str
    label: str
    axes: tuple[tuple[str, int, bool], ...]
    stores: tuple[Access, ...]
    loads: tuple[Access, ...]
    is_leaf: bool = True
    copies: bool = False
    inside: tuple[str, ...] = ()  # labels of the blocks inside

    @property
    def op(self) -> str:
        """The op that the block's label names; empty without a label."""
        return self.label.rpartition(":")[0]


@dataclass(frozen=True)
class Accesses:
    """A function's buffers by number, those of its parameters, and its blocks in order."""

    shapes: tuple[tuple[Extent, ...], ...]
    params: tuple[int, ...]
    blocks: tuple[BlockAccesses, ...]
    dtypes: tuple[str, ...]

    def to_data(self) -> list[object]:
        """Plain data for JSON; lists, for there are many of them."""
        blocks = [
            [b.name, b.label, b.axes, [[a.buffer, a.index] for a in b.stores],
             [[a.buffer, a.index] for a in b.loads], b.is_leaf, b.copies, b.inside]
            for b in self.blocks
        ]  # fmt: skip
        return [self.shapes, self.params, blocks, self.dtypes]


def from_data(data: Any) -> Accesses:
    """The inverse of `Accesses.to_data`, after JSON made lists of the tuples."""
    shapes, params, found, dtypes = data

    def accesses(listed: Any) -> tuple[Access, ...]:
        return tuple(Access(int(buffer), _tupled(index)) for buffer, index in listed)

    blocks = tuple(
        BlockAccesses(
            str(name), str(label), _tupled(axes), accesses(stores), accesses(loads),
            bool(is_leaf), bool(copies), _tupled(inside),
        )
        for name, label, axes, stores, loads, is_leaf, copies, inside in found
    )  # fmt: skip
    return Accesses(_tupled(shapes), _tupled(params), blocks, _tupled(dtypes))


def _tupled(value: PrimExpr) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, (list, tuple)) else value


def accesses_of(func: PrimFunc) -> Accesses:
    """Read them off a PrimFunc that is made of blocks."""
    return _Scan(func).result()


class _Scan:
    """Numbers buffers as it meets them, the parameters first."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.numbers: dict[Any, int] = {}
        self.shapes: list[tuple[Extent, ...]] = []
        self.dtypes: list[str] = []
        self.params = tuple(self._number(b) for b in param_buffers(func) if hasattr(b, "shape"))

    def _number(self, buffer: Buffer) -> int:
        if buffer not in self.numbers:
            self.numbers[buffer] = len(self.shapes)
            self.shapes.append(tuple(_extent_or_name(e) for e in buffer.shape))
            self.dtypes.append(dtype_of(buffer))
        return self.numbers[buffer]

    def result(self) -> Accesses:
        found = blocks_of(self.func)
        blocks = tuple(self._block(block) for block in found)
        return Accesses(tuple(self.shapes), self.params, blocks, tuple(self.dtypes))

    def _block(self, block: Stmt) -> BlockAccesses:
        # An axis of one element is always 0; TVM writes either.
        names: dict[Any, Expr] = {
            iv.var: 0 if _extent(iv.dom.extent) == 1 else str(iv.var.name) for iv in block.iter_vars
        }
        axes = tuple(
            (str(iv.var.name), _extent(iv.dom.extent) or 0, is_reduction(iv))
            for iv in block.iter_vars
        )
        inside: list[Any] = []
        stores: list[Access] = []
        loads: list[Access] = []
        values: list[Any] = []
        guarded = Guarded(block)

        def visit(node: TirNode) -> None:
            kind = type(node).__name__
            if kind in _BLOCKS:
                inside.append(node)
            elif kind == "BufferStore":
                stores.append(self._access(node.buffer, node.indices, names))
                values.append(node.value)
            else:
                seen = {**names, **guarded.narrowed(node)}
                loads.append(self._access(region_buffer(node), node.indices, seen))

        walk(block.body, visit, *_BLOCKS, *LOADS, "BufferStore")
        copies = len(values) == 1 and type(values[0]).__name__ in LOADS and block.init is None
        if block.init is not None:
            walk(block.init, visit, *LOADS, "BufferStore")
        written = {s.buffer for s in stores}
        stores += [a for a in loads if a.buffer in written]  # a sum reads itself
        loads = [a for a in loads if a.buffer not in written]
        regions = {self._number(region_buffer(r)) for r in [*block.reads, *block.writes]}
        hidden = regions - written - {a.buffer for a in loads}  # behind an intrinsic or an alias
        stores += [Access(buffer, None) for buffer in sorted(hidden)]
        return BlockAccesses(
            str(block.name_hint), label_of(block), axes, tuple(dict.fromkeys(stores)),
            tuple(loads), not inside, copies and not hidden, tuple(label_of(b) for b in inside),
        )  # fmt: skip

    def _access(
        self, buffer: Buffer, indices: Sequence[PrimExpr], names: Mapping[PrimExpr, Expr]
    ) -> Access:
        index = tuple(encoded(i, names) for i in indices)
        return Access(self._number(buffer), None if None in index else index)


def blocks_of(func: PrimFunc) -> list[Stmt]:
    """Every block of a function in program order, inner ones before those around them, without the
    root.
    """
    found: list[Any] = []
    walk(func.body, found.append, *_BLOCKS)
    return found[:-1]


def label_of(block: Stmt) -> str:
    """The label that recording put on a block, or nothing."""
    annotations = block.annotations
    names = [str(key) for key in annotations.keys()]  # noqa: SIM118 (no Python dict)
    return str(annotations[OP_LABEL]) if OP_LABEL in names else ""


def _extent(value: PrimExpr) -> int | None:
    return int(value) if isinstance(value, (int, tir.IntImm)) else None


def _extent_or_name(value: PrimExpr) -> Extent:
    """Of a symbol its name: axes of one name have one extent."""
    return str(value.name) if isinstance(value, tir.Var) else _extent(value)
