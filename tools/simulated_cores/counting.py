"""Of a kernel's schedule: its parallel regions, and the cache lines that several cores write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from selfbyoc.analysis.bounds.accesses import Access, Loop, accesses
from selfbyoc.analysis.bounds.enumerate import turns
from selfbyoc.analysis.bounds.expressions import bytes_of
from selfbyoc.analysis.bounds.runs import compiled
from selfbyoc.analysis.kernels import Kernel
from selfbyoc.analysis.melting.balance import balance
from selfbyoc.analysis.melting.flops import flops_of_graph
from selfbyoc.analysis.melting.read_nest import loop_nest
from selfbyoc.machine import LINE
from selfbyoc.tir.lowering import finished
from selfbyoc.tvm import make_target, target_dict
from selfbyoc.tvm.types import PrimFunc, Target
from selfbyoc.tvm.values import Unknown


@dataclass(frozen=True)
class Region:
    """A parallel loop: its tasks, and its share of the kernel's work."""

    tasks: int
    share: float


@dataclass(frozen=True)
class Counted:
    """A kernel: its regions, operations, bytes of weights and of all its arguments; the lines of
    cache that its regions write, and how many of them two cores write.
    """

    symbol: str
    composite: str
    regions: tuple[Region, ...]
    flops: int
    weights: int
    bytes: int
    lines: int
    shared: int


def counted(kernel: Kernel, target: Target, cores: int) -> Counted:
    """A kernel of a partitioned module, as it is scheduled for a target of so many cores."""
    func = kernel.schedule(target)[1].mod["main"]
    found = balance(loop_nest(func))
    regions = tuple(Region(r.tasks, r.share) for r in found.regions)
    written = lines(finished(func, target), target, cores)
    graph = kernel.source.graph
    sizes = [prod(v.shape) * bytes_of((), v.dtype) for v in (*graph.inputs, *graph.outputs)]
    weights = sum(array.nbytes for array in kernel.calls[0].values())  # as they are packed
    return Counted(
        kernel.symbol, kernel.composite.name, regions, flops_of_graph(graph), weights, sum(sizes),
        sum(whole for whole, _ in written), sum(shared for _, shared in written),
    )  # fmt: skip


def lines(func: PrimFunc, target: Target, cores: int) -> list[tuple[int, int]]:
    """Of each parallel loop of a finished function, in order: the lines of cache that its tasks
    write outside of their own memory, and how many of them by tasks of several cores.
    """
    fast = make_target({**target_dict(target), "opt-level": 0})  # only what is lowered is asked for
    func, lowered, _ = compiled(func, fast)
    regions: dict[Any, list[tuple[Access, Loop]]] = {}
    for access in accesses(lowered, func).found:
        around = next((loop for loop in access.loops if loop.is_parallel), None)
        if around is not None:
            stores = regions.setdefault(around.var, [])
            if access.is_store and around not in access.root.loops:
                stores.append((access, around))
    return [_written(stores, cores) for stores in regions.values()]


def _written(stores: Sequence[tuple[Access, Loop]], cores: int) -> tuple[int, int]:
    """Lines that are written, and by several cores."""
    pairs: dict[str, list[np.ndarray]] = {}
    try:
        for access, loop in stores:
            pairs.setdefault(access.root.name, []).append(_lines(access, loop, cores))
    except Unknown:
        return 0, 0
    whole = shared = 0
    for found in pairs.values():
        each = np.unique(np.concatenate(found))  # each line with each of its cores, once
        _, writers = np.unique(each // cores, return_counts=True)
        whole += len(writers)
        shared += int((writers > 1).sum())
    return whole, shared


def _lines(access: Access, loop: Loop, cores: int) -> np.ndarray:
    """Line * cores + core of each store."""
    size = bytes_of((), access.buffer.dtype)
    share = -(-int(loop.extent) // cores)  # tasks of a core
    found = []
    for turn in turns(access.index, access.guards, access.loops, [loop.var]):
        core = (turn.variables[loop.var] - int(loop.first)) // share
        ends = turn.index[:, [0, -1]]
        is_short = (np.abs(ends[:, 1] - ends[:, 0]) * size < LINE).all()
        line = (ends if is_short else turn.index) * size // LINE
        found.append(np.unique(line * cores + core[:, None]))
    return np.concatenate(found) if found else np.zeros(0, "int64")
