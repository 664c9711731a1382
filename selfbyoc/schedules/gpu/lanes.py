"""What the lanes of warps want of shared memory at once, and when: read off a schedule whose loops
all have their threads.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Any

import numpy as np

from ...machine.gpu import WARP
from ...tvm import region_buffer, scope_of, structural_equal, walk
from ...tvm.types import Buffer, PrimExpr, PrimVar, Schedule, Stmt, TirNode
from ...tvm.values import Unknown, evaluated
from ..steps.blocks import Facts, facts
from .plan import BlockPlan
from .threads import X, Y

MOST_TURNS = 16  # of the loops around that are looked at: the others repeat them


@dataclass(frozen=True)
class Wanted:
    """Elements of a buffer that lanes want at once."""

    index: Sequence[np.ndarray]  # by dimension: [warp in some turn, lane]
    active: np.ndarray
    weight: np.ndarray  # [warp in some turn]: how often it comes

    @property
    def shape(self) -> list[int]:
        """Of the part of the buffer that they are in."""
        there = [i[self.active] for i in self.index]
        return [int(i.max() - i.min()) + 1 if i.size else 1 for i in there]


@dataclass(frozen=True, eq=False)
class Use:
    """A buffer, or several in the same memory: what is wanted of them by all blocks, and in which
    of these they must be kept.
    """

    wanted: Wanted
    first: int
    last: int
    width: int  # bytes of an element

    @property
    def size(self) -> int:
        """Bytes that it takes without any between its rows."""
        return prod(self.wanted.shape) * self.width


@dataclass(frozen=True)
class _Place:
    """A block in its loops."""

    block: Facts
    realized: Stmt
    loops: Sequence[Stmt]


def uses(sch: Schedule, plan: BlockPlan) -> dict[Buffer, Use]:
    """Of each buffer in shared memory; one for all that TVM gives the same memory, as long as they
    have the same layout.
    """
    places = _places(sch)
    regions: dict[Any, list[tuple[int, Any]]] = {}
    for n, place in enumerate(places):
        for region in (*place.block.stmt.reads, *place.block.stmt.writes):
            if scope_of(region_buffer(region)) == "shared":
                regions.setdefault(region_buffer(region), []).append((n, region))
    found: dict[Any, Use] = {}
    for buffer, wanted in regions.items():
        use = _use(places, wanted, plan)
        if use is None:
            continue
        written = places[use.first].block
        before = [b for b in found if found[b].last == use.first and _in_place(written, b, buffer)]
        if before:
            old = found[before[0]]
            use = replace(old, wanted=_together([old.wanted, use.wanted]), last=use.last)
            found |= {b: use for b in found if found[b] is old}
        found[buffer] = use
    return found


def _in_place(block: Facts, old: Buffer, new: Buffer) -> bool:
    """Whether a block writes each element of a buffer where it has just read one of another."""
    (written,) = [r for r in block.stmt.writes if region_buffer(r).same_as(new)]
    read = [r for r in block.stmt.reads if region_buffer(r).same_as(old)]
    if block.reduction or len(read) != 1 or str(old.dtype) != str(new.dtype):
        return False
    pairs = zip([*old.shape, *_first(read[0])], [*new.shape, *_first(written)], strict=True)
    return len(old.shape) == len(new.shape) and all(structural_equal(a, b) for a, b in pairs)


def _first(region: TirNode) -> list[PrimExpr]:
    return [dim.min for dim in region.region]


def _places(sch: Schedule) -> list[_Place]:
    realized: list[Any] = []

    def visit(node: Stmt) -> None:
        if type(node).__name__.endswith("BlockRealize"):
            realized.append(node)

    walk(sch.mod["main"].body, visit)
    found = []
    for block in facts(sch):
        (node,) = [node for node in realized if node.block.same_as(block.stmt)]
        found.append(_Place(block, node, [sch.get(loop) for loop in sch.get_loops(block.block)]))
    return found


def _use(
    places: Sequence[_Place], regions: Sequence[tuple[int, TirNode]], plan: BlockPlan
) -> Use | None:
    """None: nothing is known of it."""
    paths = [places[n].loops for n, _ in regions]
    same = [all(a.same_as(b[0]) for a in b) for b in zip(*paths, strict=False)]
    around = next((n for n, is_same in enumerate(same) if not is_same), len(same))
    found = [w for n, region in regions for w in _wanted(places[n], region, around, plan)]
    if not found:
        return None
    first, last = regions[0][0], max(n for n, _ in regions)
    loop = places[last].loops[around : around + 1]  # its next turn wants the buffer again
    if loop:
        last = max(n for n, p in enumerate(places) if any(loop[0].same_as(x) for x in p.loops))
    return Use(_together(found), first, last, width_of(region_buffer(regions[0][1]).dtype))


def width_of(dtype: object) -> int:
    """Bytes of an element."""
    bits = re.search(r"\d+", str(dtype))
    return max(1, int(bits[0]) // 8) if bits else 1


def _wanted(place: _Place, region: TirNode, around: int, plan: BlockPlan) -> Iterator[Wanted]:
    """By one block, in one turn of the loops around the buffer; none if it is not known."""
    if any(int(getattr(dim.extent, "value", 0)) != 1 for dim in region.region):
        return
    number = np.arange(ceil(plan.threads / WARP) * WARP).reshape(1, -1, WARP)
    try:
        env, times = _turns(place.loops, around, number, plan)
        pairs = zip(place.block.stmt.iter_vars, place.realized.iter_values, strict=True)
        env |= {axis.var: evaluated(value, env) for axis, value in pairs}
        active = np.asarray(evaluated(place.realized.predicate, env), bool)
        index = [evaluated(dim.min, env) for dim in region.region]
    except Unknown:
        return
    shape = np.broadcast_shapes(*(np.shape(v) for v in env.values()), number.shape)
    there = (np.broadcast_to(active, shape) & (number < plan.threads)).reshape(-1, WARP)
    flat = [np.broadcast_to(i, shape).reshape(-1, WARP) for i in index]
    yield Wanted(flat, there, np.full(len(there), times / len(there)))


def _turns(
    loops: Sequence[Stmt], around: int, number: np.ndarray, plan: BlockPlan
) -> tuple[dict[PrimVar, np.ndarray], int]:
    """Values of the variables of loops, of threads all, of others some: [turn, warp, lane]; and how
    often a thread comes.
    """
    by_tag = {X: number % plan.lanes, Y: number // plan.lanes}
    env: dict[Any, Any] = {}
    others: list[tuple[Any, int, bool]] = []
    for n, loop in enumerate(loops):
        tag = str(loop.thread_binding.thread_tag) if loop.thread_binding is not None else ""
        if tag:
            env[loop.loop_var] = by_tag.get(tag, np.zeros((1, 1, 1), int))
        elif hasattr(loop.extent, "value"):
            others.append((loop.loop_var, int(loop.extent.value), n < around))
        else:
            raise Unknown(f"the extent {loop.extent} is not known")
    some = [{0} if once else {0, 1, extent - 1} & set(range(extent)) for _, extent, once in others]
    every = list(itertools.product(*map(sorted, some)))
    # The first, the last and some between, of all loops: 7919 is no multiple of 2 or 3.
    picked = {0, len(every) - 1, *(n * 7919 % len(every) for n in range(MOST_TURNS))}
    steps = np.array([every[n] for n in sorted(picked)])
    env |= {var: steps[:, n, None, None] for n, (var, *_) in enumerate(others)}
    return env, prod(extent for _, extent, _ in others)


def _together(each: Sequence[Wanted]) -> Wanted:
    index = zip(*(wanted.index for wanted in each), strict=True)
    return Wanted(
        [np.concatenate(dim) for dim in index],
        np.concatenate([wanted.active for wanted in each]),
        np.concatenate([wanted.weight for wanted in each]),
    )


def memory(found: Iterable[Use]) -> int:
    """Bytes that buffers take together as TVM gives them memory that is free again: that of a 16th
    of their size to 16 times of it, first the smallest which is large enough.
    """
    known = list(dict.fromkeys(found))
    free: list[int] = []
    total = 0
    for n in range(1 + max((use.last for use in known), default=-1)):
        for use in known:
            if use.first != n:
                continue
            fit = [size for size in free if use.size <= size <= use.size * 16]
            near = [size for size in free if use.size / 16 <= size < use.size]
            taken = min(fit) if fit else max(near, default=0)
            if taken:
                free.remove(taken)
            total += max(0, use.size - taken)
        free += [use.size for use in known if use.last == n]
    return total
