"""Questions about the blocks of a schedule; nothing here rewrites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

from ...tvm import child_blocks, is_reduction, param_buffers, region_buffer, scope_of, walk
from ...tvm.types import Block, PrimExpr, PrimVar, Range, Schedule, Stmt, TirNode
from .indices import Axis, groups_in, is_axis, uses

# An expression with one of these is not computed again for every reader.
_COSTLY = ("Call", "Div", "FloorDiv", "FloorMod")
_FREE_CALLS = ("if_then_else", "likely", "nearbyint", "floor")


class Facts:
    """What is known of one block: its axes, and how its reads use them."""

    def __init__(self, sch: Schedule, block: Block) -> None:
        self.sch, self.block, self.stmt = sch, block, sch.get(block)
        self.name = str(self.stmt.name_hint)

    @cached_property
    def axes(self) -> list[Axis]:
        """The block's own axes, in order."""
        return [
            Axis(i, int(iv.dom.extent), is_reduction(iv), iv.var)
            for i, iv in enumerate(self.stmt.iter_vars)
        ]

    @property
    def spatial(self) -> list[Axis]:
        """The axes of the result."""
        return [axis for axis in self.axes if not axis.reduces]

    @property
    def reduction(self) -> list[Axis]:
        """The axes that are summed or otherwise reduced over."""
        return [axis for axis in self.axes if axis.reduces]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result."""
        return tuple(axis.extent for axis in self.spatial)

    @property
    def size(self) -> int:
        """Elements of the result."""
        return math.prod(self.shape)

    @property
    def steps(self) -> int:
        """Iterations in all, the reduced ones too."""
        return math.prod(axis.extent for axis in self.axes)

    @property
    def dtype(self) -> str:
        """Of the result."""
        return str(region_buffer(self.stmt.writes[0]).dtype)

    def in_scope(self, scope: str) -> bool:
        """Whether the result is in a buffer of this scope by now."""
        return scope_of(region_buffer(self.sch.get(self.block).writes[0])) == scope

    @property
    def consumers(self) -> list[Facts]:
        """The blocks that read the result."""
        return [Facts(self.sch, b) for b in self.sch.get_consumers(self.block)]

    @property
    def results_read(self) -> int:
        """How many of its results others read: a mean and a variance may be of one block."""
        read = [region_buffer(r) for c in self.consumers for r in c.stmt.reads]
        written = [region_buffer(w) for w in self.stmt.writes]
        return sum(any(w.same_as(r) for r in read) for w in written)

    @property
    def producers(self) -> list[Facts]:
        """The blocks whose results it reads."""
        return [Facts(self.sch, b) for b in self.sch.get_producers(self.block)]

    @property
    def is_output(self) -> bool:
        """Whether the function returns the result."""
        written = region_buffer(self.stmt.writes[0])
        return any(written.same_as(p) for p in param_buffers(self.sch.mod["main"]))

    @property
    def is_costly(self) -> bool:
        """Whether computing an element again costs more than reading it, with all that was inlined
        into it by now.
        """
        found = []

        def visit(node: PrimExpr) -> None:
            kind = type(node).__name__
            free = kind == "Call" and getattr(node.op, "name", "").split(".")[-1] in _FREE_CALLS
            if not free:
                found.append(kind)

        walk(self.sch.get(self.block).body, visit, *_COSTLY)
        return bool(found)

    @property
    def variables(self) -> list[list[PrimVar]]:
        """For each axis the variables of the loops that it follows from."""
        realized: list[Any] = []

        def visit(node: Stmt) -> None:
            if node.block.same_as(self.stmt):
                realized.append(node)

        walk(self.sch.mod["main"].body, visit, "BlockRealize", "SBlockRealize")
        found: list[list[Any]] = []
        for value in realized[0].iter_values:
            inside: list[Any] = []
            walk(value, inside.append, "Var")
            found.append(inside)
        return found

    def _dims(self, region: TirNode, axis: Axis, apart: int = 0) -> list[int]:
        """The dimensions of a read region whose start depends on an axis, groups of so many aside
        (`axis // apart`).
        """
        found = []
        for dim, extent in enumerate(region.region):
            times = uses(extent.min, axis)
            if times and not (apart and times == groups_in(extent.min, axis).count(apart)):
                found.append(dim)
        return found

    def groups_of(self, axis: Axis) -> list[int]:
        """The sizes of groups that reads divide an axis by."""
        starts = [extent.min for region in self._operands() for extent in region.region]
        return sorted({size for start in starts for size in groups_in(start, axis)}, reverse=True)

    def reads_of(self, axis: Axis, apart: int = 0) -> list[str]:
        """How each read uses an axis: "absent", "last" (neighbours are contiguous) or "strided".
        `apart`: neighbours in a group of so many are meant.
        """
        how = []
        for region in self.stmt.reads:
            if region_buffer(region).same_as(region_buffer(self.stmt.writes[0])):
                continue
            dims = self._dims(region, axis, apart)
            last = len(region.region) - 1
            # A packed operand is read at [axis // lanes, ..., axis % lanes]: contiguous inside one
            # vector.
            how.append("absent" if not dims else "last" if last in dims else "strided")
        return how

    def buffers_along(self, axis: Axis) -> list[str]:
        """The buffers that it reads along an axis in their last dimension, its own aside."""
        found = [(region_buffer(r), self._dims(r, axis)) for r in self._operands()]
        return [str(buffer.name) for buffer, dims in found if len(buffer.shape) - 1 in dims]

    def reduces_rows(self) -> bool:
        """Whether what it reduces over is contiguous: the last dimensions of each read, whole but
        for the first.
        """
        free = [r for r in self._operands() if any(self._dims(r, a) for a in self.reduction)]
        return all(self._is_row(region) for region in free)

    def _operands(self) -> list[TirNode]:
        """The regions it reads, its own result aside."""
        own = region_buffer(self.stmt.writes[0])
        return [r for r in self.stmt.reads if not region_buffer(r).same_as(own)]

    def _is_row(self, region: TirNode) -> bool:
        inner = list(region.region)[-len(self.reduction) :]
        shape = list(region_buffer(region).shape)[-len(self.reduction) :]
        if len(inner) < len(self.reduction):
            return False
        in_place = all(
            is_axis(r.min, axis, self.axes) or axis.extent == 1
            for r, axis in zip(inner, self.reduction, strict=True)
        )
        return in_place and all(
            int(extent) == axis.extent
            for extent, axis in zip(shape[1:], self.reduction[1:], strict=True)
        )


def facts(sch: Schedule) -> list[Facts]:
    """Every block under the root, in program order."""
    return [Facts(sch, block) for block in child_blocks(sch)]


def others(sch: Schedule, stages: object) -> list[Facts]:
    """The blocks that no role names: arguments reshaped or packed at run time, constants."""
    named = [sch.get(block) for block in leaves(stages)]
    return [b for b in facts(sch) if not any(b.stmt.same_as(known) for known in named)]


def leaves(stages: object) -> list[Block]:
    """The blocks in a dataclass of stages by role, of which some may be absent."""
    if stages is None:
        return []
    if is_dataclass(stages):
        inner = [getattr(stages, field.name) for field in fields(stages)]
    elif isinstance(stages, (list, tuple)):
        inner = list(stages)
    elif isinstance(stages, Mapping):
        inner = list(stages.values())
    else:
        return [stages]
    return [block for part in inner for block in leaves(part)]


def divisor(extent: int, most: int) -> int:
    """The largest divisor of an extent that is not above `most`."""
    return next(d for d in range(min(extent, most), 0, -1) if extent % d == 0)


def stored_at_once(extent: int, lanes: int) -> int:
    """Elements of a row that one run of its loop stores; 0: no vectors. Whole vectors, four at
    most, where these divide it: 144x56x56, a depthwise 3x3 and swish, one core of Zen 3, 28 pixels
    at a time 378 us, 8 at a time 354. Else LLVM splits a short row of any length into whole vectors
    and a tail; a long one must divide.
    """
    if extent % lanes == 0:
        return lanes * divisor(extent // lanes, 4)
    found = extent if extent <= 4 * lanes else divisor(extent, 4 * lanes)
    return found if found * 2 >= lanes else 0


def same_elements(producer: Facts, consumer: Facts) -> bool:
    """Whether a consumer reads one element of the producer for each of its own, in place."""
    written = region_buffer(producer.stmt.writes[0])
    regions = [r for r in consumer.stmt.reads if region_buffer(r).same_as(written)]
    if len(regions) != 1 or producer.shape != consumer.shape:
        return False
    return _is_identity(regions[0].region, consumer.spatial)


def _is_identity(region: Sequence[Range], axes: Sequence[Axis]) -> bool:
    return len(region) == len(axes) and all(
        r.min.same_as(a.var) or a.extent == 1 for r, a in zip(region, axes, strict=True)
    )
