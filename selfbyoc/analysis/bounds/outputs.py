"""Is every element of an output written, how often, and by one task alone?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ...tir.lanes import found_in, lanes_of
from ...tvm import dtype_of, region_buffer, structural_equal, tir, tvm
from ...tvm.bounds import contiguous
from ...tvm.types import TirNode
from ...tvm.values import Unknown
from .accesses import Access, Loop, Root
from .enumerate import Turns, extents, is_plain, turns, used_by
from .expressions import LOADS
from .records import AGAIN, ANALYZER, ENUMERATION, ONCE, OPEN, SUMS, WRONG, Answer, OutputProof


def output(root: Root, found: Sequence[Access]) -> OutputProof:
    """How an output is written by the accesses of its function."""
    stores = [access for access in found if access.root is root and access.is_store]
    plain = [store for store in stores if not _is_update(store)]
    times = ONCE if len(plain) == len(stores) else SUMS
    if _fills(root, plain):
        return OutputProof(root.name, Answer(ANALYZER), times, 0, ANALYZER)
    try:
        counts = _counts(root, plain)
    except Unknown as err:
        return OutputProof(root.name, Answer(OPEN, str(err)), times)
    if not counts.all():
        missing = np.flatnonzero(counts == 0)
        text = (
            f"{missing.size} of {counts.size} elements are not written, the first is {missing[0]}"
        )
        return OutputProof(root.name, Answer(WRONG, text), times)
    again = int((counts > 1).sum())
    return OutputProof(
        root.name, Answer(ENUMERATION), AGAIN if again else times, again, ENUMERATION
    )


def _is_update(store: Access) -> bool:
    """Whether a store adds to what is there."""

    def is_same(node: TirNode) -> bool:
        return type(node).__name__ in LOADS and any(
            structural_equal(index, store.raw) for index in node.indices
        )

    loads = found_in(store.value, is_same)
    return any(region_buffer(load).same_as(store.buffer) for load in loads)


def _fills(root: Root, stores: Sequence[Access]) -> bool:
    """Whether TVM proves that the stores' elements lie one after the other, and are all of them."""
    spans = []
    for store in stores:
        span = None if store.open else _span(store)
        if span is None:
            return False
        size = root.bytes // store.elements
        spans.append((span[0] * size, span[1] * size))
    end = 0
    for first, count in sorted(spans):
        if first != end:
            return False
        end += count
    return end == root.bytes


def _span(store: Access) -> tuple[int, int] | None:
    """First element and their number, each written once in all iterations of all loops."""
    index, ranges = store.index, {}
    for loop in store.loops:
        ranges[loop.var] = tvm.ir.Range.from_min_extent(loop.first, loop.extent)
    if lanes_of(index) > 1:
        if type(index).__name__ != "Ramp":
            return None
        var = tir.Var("lane", dtype_of(index.base))
        ranges[var] = tvm.ir.Range.from_min_extent(tir.const(0, dtype_of(var)), lanes_of(index))
        index = index.base + index.stride * var
    if not all(map(is_plain, store.guards)):
        return None
    condition = tir.const(1, "bool") if not store.guards else tir.all(*store.guards)
    return contiguous(index, ranges, condition)


def _counts(root: Root, stores: Sequence[Access]) -> np.ndarray:
    """How often each unit of an output is written, but for sums in place."""
    unit = _unit(root, stores)
    counts = np.zeros(root.bytes // unit, "int64")
    for store in stores:
        _ask(store)
        sizes, used = extents(store.loops), used_by(store.index, store.guards, store.loops)
        times = prod(sizes[loop.var] for loop in store.loops if loop.var not in used)
        for part in turns(store.index, store.guards, store.loops):
            places = _units(part, root, store, unit)
            if places.size and (places.min() < 0 or places.max() >= counts.size):
                raise Unknown("it is written outside")
            counts += times * np.bincount(places, minlength=counts.size)
    return counts


def _ask(access: Access) -> None:
    """Nothing can be counted where an index or a condition is data."""
    if access.open:
        raise Unknown(access.open)
    if not all(map(is_plain, access.guards)):
        raise Unknown("a condition of data is around it")


def _unit(root: Root, found: Sequence[Access]) -> int:
    """Bytes of the smallest element that it is accessed by."""
    return min((root.bytes // access.elements for access in found), default=root.bytes)


def _units(part: Turns, root: Root, access: Access, unit: int) -> np.ndarray:
    each = root.bytes // access.elements // unit
    return (part.index[:, :, None] * each + np.arange(each)).ravel()


def races(found: Sequence[Access]) -> Iterator[tuple[Root, Answer]]:
    """For each buffer that a parallel loop writes to and that lies outside of it: whether its tasks
    keep apart.
    """
    seen: set[tuple[Any, Root]] = set()
    for store in found:
        task = _task(store)
        if task is None or not store.is_store or (task.var, store.root) in seen:
            continue
        seen.add((task.var, store.root))
        if not any(loop.var.same_as(task.var) for loop in store.root.loops):
            yield store.root, _apart(store.root, task, found)


def _task(access: Access) -> Loop | None:
    return next((loop for loop in access.loops if loop.is_parallel), None)


def _apart(root: Root, task: Loop, found: Sequence[Access]) -> Answer:
    """No element is written by one task and touched by another one."""
    near = [a for a in found if a.root is root and any(o.var.same_as(task.var) for o in a.loops)]
    stores, loads = [a for a in near if a.is_store], [a for a in near if not a.is_store]
    if not loads and len(stores) == 1 and not stores[0].open and _span(stores[0]) is not None:
        return Answer(ANALYZER)
    unit = _unit(root, near)
    owner = np.full(root.bytes // unit, -1, "int64")
    try:
        for access in [*stores, *loads]:
            who = _other(access, root, task, owner, unit)
            if who:
                return Answer(WRONG, who)
    except Unknown as err:
        return Answer(OPEN, str(err))
    return Answer(ENUMERATION)


def _other(access: Access, root: Root, task: Loop, owner: np.ndarray, unit: int) -> str:
    """The first element that another task has written, in words; takes what is written."""
    _ask(access)
    for part in turns(access.index, access.guards, access.loops, [task.var]):
        places = _units(part, root, access, unit)
        mine = np.repeat(part.variables[task.var], places.size // max(1, len(part.index)))
        if places.size and (places.min() < 0 or places.max() >= owner.size):
            raise Unknown("it leaves the buffer")
        before = owner[places]
        others = (before >= 0) & (before != mine)
        if access.is_store and not others.any():
            owner[places] = mine
            before = owner[places]
            others = before != mine
        if others.any():
            at = int(others.argmax())
            verb = "written" if access.is_store else "read"
            return f"element {places[at]} is written by task {before[at]} and {verb} by {mine[at]}"
    return ""
