"""Which axes the stages of a function share: its rows. A thread block can compute all stages of its
rows, and needs no other block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...tvm import region_buffer
from ...tvm.types import Buffer, PrimExpr, Range
from ..steps.blocks import Facts
from ..steps.indices import Axis

PRODUCT, ROW, COLUMN, EACH = "product", "row", "column", "each"  # what a stage is
ONE_BLOCK = 1 << 14  # elements that one thread block can well do alone
Rows = Mapping[int, int]  # axis of a block -> the axis of the result that it follows


class NoChain(Exception):
    """Why the stages are no chain over shared rows."""


@dataclass(frozen=True)
class Stage:
    """A block of the chain."""

    block: Facts
    kind: str  # a product; a sum that lanes share, or each has alone; elements by themselves
    rows: Rows

    @property
    def name(self) -> str:
        """Of the block."""
        return self.block.name

    @property
    def columns(self) -> list[Axis]:
        """The axes of its result that are no rows."""
        return [a for a in self.block.spatial if a.position not in self.rows and a.extent > 1]

    @property
    def width(self) -> int:
        """Elements of one row."""
        return math.prod(a.extent for a in self.columns)

    @property
    def depth(self) -> int:
        """Terms of a sum."""
        return math.prod(a.extent for a in self.block.reduction)


@dataclass(frozen=True)
class Chain:
    """Stages in order, the last one the result."""

    stages: Sequence[Stage]
    rows: Sequence[int]  # axes of the result
    tiled: int | None  # which of them is cut into blocks; None: all are of one element

    @property
    def result(self) -> Stage:
        """What is stored."""
        return self.stages[-1]

    def of(self, kind: str) -> list[Stage]:
        """The stages of one kind."""
        return [stage for stage in self.stages if stage.kind == kind]

    def extent(self, axis: int | None) -> int:
        """Of an axis of the result."""
        return 1 if axis is None else self.result.block.spatial[axis].extent

    def tiled_axis(self, stage: Stage) -> Axis | None:
        """The axis of a stage that is cut into blocks."""
        found = [a for a in stage.block.spatial if stage.rows.get(a.position) == self.tiled]
        return found[0] if found and self.tiled is not None else None


def chain_of(blocks: Sequence[Facts]) -> Chain:
    """Blocks in program order as a chain. Raises NoChain."""
    outputs = [block for block in blocks if block.is_output]
    if len(outputs) != 1:
        raise NoChain(f"it has {len(outputs)} results")
    if any(len(block.stmt.writes) != 1 for block in blocks):
        raise NoChain("a stage has several results")
    ties = _ties(blocks, outputs[0])
    rows = _shared(blocks, ties)
    rows -= {axis for block in blocks for axis in _across(block, ties[block.name], rows)}
    stages = []
    for block in blocks:
        mine = {own: axis for own, axis in ties[block.name].items() if axis in rows}
        stages.append(Stage(block, _kind(block, mine), mine))
    if not rows and max(max(stage.width, stage.depth) for stage in stages) > ONE_BLOCK:
        raise NoChain("its stages share no rows, and are too much for one thread block")
    return Chain(stages, sorted(rows), _tiled(stages, outputs[0], rows))


def _ties(blocks: Sequence[Facts], result: Facts) -> dict[str, dict[int, int]]:
    """For each block, which of its axes are which of the result, whoever reads it."""
    ties = {result.name: {axis.position: n for n, axis in enumerate(result.spatial)}}
    for block in reversed(blocks):
        if block.name in ties:
            continue
        written = region_buffer(block.stmt.writes[0])
        reads = [
            (ties[reader.name], reader, list(region.region))
            for reader in block.consumers
            if reader.name in ties
            for region in reader.stmt.reads
            if region_buffer(region).same_as(written)
        ]
        ties[block.name] = {
            axis.position: found
            for axis, dim in _dims(block)
            if (found := _tie(reads, dim)) is not None
        }
    return ties


def _dims(block: Facts) -> list[tuple[Axis, int]]:
    """Each axis of a result and the dimension that it is stored along."""
    dims = list(block.stmt.writes[0].region)
    return [
        (axis, n) for axis in block.spatial for n, r in enumerate(dims) if r.min.same_as(axis.var)
    ]


def _tie(reads: Sequence[tuple[Rows, Facts, list[Range]]], dim: int) -> int | None:
    """The axis of the result by which all reads go along a dimension."""
    found: set[int | None] = set()
    for ties, reader, region in reads:
        axis = plain(index_of(region[dim]), reader)
        found.add(None if axis is None else ties.get(axis.position))
    return found.pop() if len(found) == 1 else None


def index_of(dim: Range) -> PrimExpr:
    """The one index that a region has along a dimension; None: it has several."""
    return dim.min if int(getattr(dim.extent, "value", 0)) == 1 else None


def plain(index: PrimExpr | None, block: Facts) -> Axis | None:
    """The axis that an index is, and nothing else."""
    return next((a for a in block.axes if index is not None and index.same_as(a.var)), None)


def _shared(blocks: Sequence[Facts], ties: Mapping[str, Rows]) -> set[int]:
    """The axes of the result, longer than one, that every stage follows which is not an operand."""
    result = blocks[[b.is_output for b in blocks].index(True)]
    found = {n for n, axis in enumerate(result.spatial) if axis.extent > 1}
    for block in blocks:
        if not is_operand(block):
            found &= set(ties[block.name].values())
    return found


def is_operand(block: Facts) -> bool:
    """Whether it only prepares arguments: any block can do so for what it reads."""
    return not (block.reduction or block.is_output) and all(map(is_operand, block.producers))


def operands(block: Facts) -> dict[Buffer, list[PrimExpr | None]]:
    """What a block reads beside its own result: indices by buffer."""
    own = region_buffer(block.stmt.writes[0])
    found: dict[Any, list[Any]] = {}
    for region in block.stmt.reads:
        if not region_buffer(region).same_as(own):
            found.setdefault(region_buffer(region), [index_of(r) for r in region.region])
    return found


def _lacked(block: Facts) -> list[set[int]]:
    """For each operand the axes of the result, longer than one, along which it is one element."""
    wide = {axis.position for axis in block.spatial if axis.extent > 1}
    return [
        wide - {axis.position for index in indices if (axis := plain(index, block))}
        for indices in operands(block).values()
    ]


def _across(block: Facts, ties: Rows, rows: set[int]) -> set[int]:
    """The columns of a product all of whose axes could be rows: the last one that an operand lacks,
    where another one lacks another.
    """
    lacked = _lacked(block) if block.reduction else []
    every = [{ties[a] for a in axes if ties.get(a) in rows} for axes in lacked]
    both = [axes for axes in every if axes]
    if len(both) < 2 or len(set.union(*both)) < 2:
        return set()
    return {max(set.union(*both))}


def _kind(block: Facts, rows: Rows) -> str:
    """What a block is, once the rows are known."""
    if not block.reduction:
        return EACH
    columns = {a.position for a in block.spatial if a.position not in rows and a.extent > 1}
    if not columns:  # a sum of one term has nothing to share
        return ROW if any(a.extent > 1 for a in block.reduction) else COLUMN
    if not any(columns <= axes for axes in _lacked(block)):
        return COLUMN
    indices = [index for read in operands(block).values() for index in read]
    if any(plain(i, block) is None and not hasattr(i, "value") for i in indices):
        raise NoChain(f"{block.name} reads windows of its argument")
    return PRODUCT


def _tiled(stages: Sequence[Stage], result: Facts, rows: set[int]) -> int | None:
    """The row axis that products share an operand along, else the longest one."""
    shared = {
        stage.rows[axis]
        for stage in stages
        if stage.kind == PRODUCT
        for axes in _lacked(stage.block)
        for axis in axes & set(stage.rows)
    }
    extents = {n: result.spatial[n].extent for n in (shared or rows)}
    return max(extents, key=lambda n: (extents[n], n)) if extents else None
