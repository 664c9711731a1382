"""Index expressions over all iterations at once, by NumPy: the exact answer where extents are
small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...tir.lanes import found_in, lanes_of
from ...tvm import Analyzer, tvm
from ...tvm.types import PrimExpr
from ...tvm.values import Unknown, evaluated
from .accesses import Loop
from .expressions import LOADS

AT_ONCE, AT_MOST = 1 << 20, 1 << 26  # elements of an array; iterations in all


@dataclass(frozen=True)
class Turns:
    """Some iterations: those for which all conditions hold."""

    index: np.ndarray  # [iteration, lane]
    variables: Mapping[PrimExpr, np.ndarray]  # [iteration]


def variables(*exprs: PrimExpr) -> list[PrimExpr]:
    """The variables of expressions."""
    found: dict[Any, None] = {}
    for expr in exprs:
        found |= dict.fromkeys(found_in(expr, lambda n: type(n).__name__ in ("Var", "SizeVar")))
    return list(found)


def is_plain(expr: PrimExpr) -> bool:
    """Whether it is of loop variables alone."""
    return not found_in(expr, lambda node: type(node).__name__ in LOADS)


def turns(
    index: PrimExpr,
    guards: Sequence[PrimExpr],
    loops: Sequence[Loop],
    also: Sequence[PrimExpr] = (),
) -> Iterator[Turns]:
    """All iterations of the variables of an index and conditions (and of `also`), in parts."""
    used = used_by(index, guards, loops, also)
    whole = [loop for loop in loops if loop.var in used]
    if len(whole) != len(used):
        raise Unknown(f"its variables are not all of loops: {index}")
    sizes = extents(loops)
    counts = [sizes[loop.var] for loop in whole]
    lanes = lanes_of(index)
    if prod(counts) * lanes > AT_MOST:
        raise Unknown(f"{prod(counts) * lanes:.1e} iterations are too many to enumerate")
    outer = 0
    while outer < len(counts) and prod(counts[outer:]) * lanes > AT_ONCE:
        outer += 1
    for first in itertools.product(*map(range, counts[:outer])):
        yield _part(index, guards, whole, first, counts[outer:])


def _part(
    index: PrimExpr,
    guards: Sequence[PrimExpr],
    loops: Sequence[Loop],
    first: Sequence[int],
    counts: Sequence[int],
) -> Turns:
    grid = np.indices(counts).reshape(len(counts), -1) if counts else np.zeros((0, 1), "int64")
    steps = [*(np.full(grid.shape[1], i) for i in first), *grid]
    env: dict[Any, np.ndarray] = {}
    keep = np.ones((grid.shape[1], 1), bool)
    for loop, step in zip(loops, steps, strict=True):
        env[loop.var] = step[:, None] + evaluated(loop.first, env)
        keep &= step[:, None] < evaluated(loop.extent, env)
    for guard in guards:
        keep = keep & np.asarray(evaluated(guard, env), bool)
    if keep.shape[1] != 1:
        raise Unknown("a condition is a vector")
    env = {var: value[keep[:, 0]] for var, value in env.items()}
    shape = (int(keep.sum()), lanes_of(index))
    variables = {var: value[:, 0] for var, value in env.items()}
    return Turns(np.broadcast_to(evaluated(index, env), shape), variables)


def used_by(
    index: PrimExpr,
    guards: Sequence[PrimExpr],
    loops: Sequence[Loop],
    also: Sequence[PrimExpr] = (),
) -> set[PrimExpr]:
    """The variables of an index and conditions, and those that their ranges depend on."""
    used = {*variables(index, *guards), *also}
    for loop in reversed(loops):
        if loop.var in used:
            used |= set(variables(loop.first, loop.extent))
    return used


def extents(loops: Sequence[Loop]) -> dict[PrimExpr, int]:
    """The most iterations of each loop."""
    ana, found = Analyzer(), {}
    for loop in loops:
        most = ana.const_int_bound(loop.extent).max_value
        if most > AT_MOST:
            raise Unknown(f"the extent {loop.extent} is not bounded")
        found[loop.var] = int(most)
        ana.bind(loop.var, tvm.ir.Range.from_min_extent(loop.first, loop.extent))
    return found
