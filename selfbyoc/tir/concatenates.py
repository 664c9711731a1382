"""A concatenate whose inputs are computed in the same function: they are written into its output.

A schedule computes each input into a buffer of its own, for a block has one writer in a schedule.
After it the buffers become slices of the output, and the copy is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..tvm import Analyzer, param_buffers, region_buffer, tir, tvm, walk
from ..tvm.rewrite import block_with, with_nodes
from ..tvm.types import Buffer, PrimExpr, PrimFunc, Stmt, TirNode

BLOCKS = ("SBlock", "Block")
LOADS = ("BufferLoad", "TensorLoad")


@dataclass(frozen=True)
class Concatenate:
    """A block that only copies: its output, and where along `axis` each input begins there."""

    name: str
    output: Buffer
    axis: int
    inputs: tuple[tuple[Any, int], ...]

    def start(self, buffer: Buffer) -> int | None:
        """Where an input begins; None for any other buffer."""
        return next((start for b, start in self.inputs if b.same_as(buffer)), None)

    def moved(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """An input's indices as the output's."""
        start = self.start(buffer) or 0
        return [i + start if d == self.axis else i for d, i in enumerate(indices)]


def is_concatenate(block: Stmt) -> bool:
    """Whether a block only copies from several buffers."""
    store = block.body
    return type(store).__name__ == "BufferStore" and len(branches(store.value)) > 1


def without_concatenates(func: PrimFunc) -> PrimFunc:
    """The function with the inputs of its concatenates written straight into their outputs."""
    root = func.body.block
    params = param_buffers(func)
    for nest in _nests(root):
        found = _concatenate(nest, root.alloc_buffers)
        if found is not None and any(found.output.same_as(p) for p in params):
            func = _rewritten(func, root, found)
            return without_concatenates(func)
    return func


def _nests(root: Stmt) -> Sequence[Stmt]:
    body = root.body
    return list(body.seq) if type(body).__name__ == "SeqStmt" else [body]


def _concatenate(nest: Stmt, own: Sequence[Buffer]) -> Concatenate | None:
    """The concatenate that a loop nest is, if the function computes all of its inputs."""
    blocks: list[Any] = []
    walk(nest, blocks.append, *BLOCKS)
    if len(blocks) != 1 or not is_concatenate(blocks[0]):
        return None
    store = blocks[0].body
    loads = branches(store.value)
    placed = [_start(store, load) for load in loads]
    if any(place is None for place in placed):
        return None
    buffers = [region_buffer(load) for load in loads]
    if not all(any(b.same_as(mine) for mine in own) for b in buffers):
        return None
    if any(b.same_as(other) for n, b in enumerate(buffers) for other in buffers[:n]):
        return None
    return _checked(str(blocks[0].name_hint), store.buffer, buffers, placed)


def branches(value: PrimExpr, kinds: Collection[str] = LOADS) -> list[PrimExpr]:
    """The loads that nested if_then_else choose from, or nodes of other kinds too; none if there is
    anything else.
    """
    if type(value).__name__ in kinds:
        return [value]
    if type(value).__name__ != "Call" or not str(value.op.name).endswith("if_then_else"):
        return []
    taken, other = branches(value.args[1], kinds), branches(value.args[2], kinds)
    return taken + other if taken and other else []


def _start(store: Stmt, load: PrimExpr) -> tuple[int, int] | None:
    """Axis and distance from what is read to where it is written; None unless it is one axis."""
    if len(store.indices) != len(load.indices):
        return None
    ana = Analyzer()
    away = [ana.simplify(w - r) for w, r in zip(store.indices, load.indices, strict=True)]
    if any(type(distance).__name__ != "IntImm" for distance in away):
        return None
    moved = [axis for axis, distance in enumerate(away) if int(distance)]
    return (moved[0], int(away[moved[0]])) if len(moved) == 1 else (-1, 0) if not moved else None


def _checked(
    name: str, output: Buffer, buffers: Sequence[Buffer], placed: Sequence[Any]
) -> Concatenate | None:
    """The concatenate, if its inputs lie one after the other and fill the output."""
    axes = {axis for axis, _ in placed if axis >= 0}
    if len(axes) != 1:
        return None
    (axis,) = axes
    inputs = sorted(zip(buffers, (start for _, start in placed), strict=True), key=lambda p: p[1])
    end = 0
    for buffer, start in inputs:
        if start != end:
            return None
        end += int(buffer.shape[axis])
    whole = end == int(output.shape[axis])
    return Concatenate(name, output, axis, tuple(inputs)) if whole else None


def _rewritten(func: PrimFunc, root: Stmt, found: Concatenate) -> PrimFunc:
    """Every access to an input becomes one to its slice, and the copying nest goes."""

    def load(node: PrimExpr) -> PrimExpr:
        if found.start(region_buffer(node)) is None:
            return node
        return tir.BufferLoad(found.output, found.moved(region_buffer(node), node.indices))

    def store(node: Stmt) -> Stmt:
        if found.start(node.buffer) is None:
            return node
        indices = found.moved(node.buffer, node.indices)
        return tir.BufferStore(found.output, node.value, indices)

    def block(node: Stmt) -> Stmt:
        body, buffers = node.body, list(node.alloc_buffers)
        if str(node.name_hint) == str(root.name_hint):
            kept = [n for n in _nests(node) if not _holds(n, found.name)]
            body = tir.SeqStmt(kept) if len(kept) > 1 else kept[0]
            buffers = [b for b in buffers if found.start(b) is None]
        reads, writes = ([_region(r, found) for r in side] for side in (node.reads, node.writes))
        return block_with(node, reads, writes, body, buffers)

    return with_nodes(func, load, store, block)


def _region(region: TirNode, found: Concatenate) -> TirNode:
    buffer = region_buffer(region)
    if found.start(buffer) is None:
        return region
    mins = found.moved(buffer, [r.min for r in region.region])
    ranges = zip(mins, region.region, strict=True)
    from_min = tvm.ir.Range.from_min_extent
    return tir.BufferRegion(found.output, [from_min(m, r.extent) for m, r in ranges])


def _holds(nest: Stmt, name: str) -> bool:
    found: list[Any] = []
    walk(nest, found.append, *BLOCKS)
    return name in [str(block.name_hint) for block in found]
