"""What the threads of a block do at once: ways that part, words of one bank, sectors of memory."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...machine.gpu import WARP, at_once
from ...tir.lanes import lanes_of
from ...tvm import dtype_of
from ...tvm.types import PrimExpr
from ...tvm.values import Unknown, evaluated
from ..bounds.accesses import Access, Loop, Place
from ..bounds.enumerate import extents, is_plain, variables
from ..bounds.expressions import bytes_of

SECTOR = 32
# Turns of the loops around that are looked at: what the others do repeats what these do.
_MOST = 256


@dataclass(frozen=True)
class Threads:
    """The threads of a block, warp by warp: x fastest, then y, then z."""

    env: Mapping[PrimExpr, np.ndarray]  # [warp, lane]
    is_there: np.ndarray  # [warp, lane]: a last warp may not be full


def threads(by_tag: Mapping[str, Loop]) -> Threads:
    """All threads of a block."""
    found = [by_tag[f"threadIdx.{axis}"] for axis in "xyz" if f"threadIdx.{axis}" in by_tag]
    counts = [int(loop.extent) for loop in found]
    number = np.arange(-(-prod(counts) // WARP) * WARP)
    is_there, env = number < prod(counts), {}
    for loop, count in zip(found, counts, strict=True):
        env[loop.var] = (number % count).reshape(-1, WARP)
        number = number // count
    return Threads(env, is_there.reshape(-1, WARP))


def _turns(place: Place, exprs: Sequence[PrimExpr], of: Threads) -> dict[PrimExpr, np.ndarray]:
    """Values for all variables of expressions: of threads all, of other loops some.
    [turn, warp, lane]
    """
    used = set(variables(*exprs))
    for loop in reversed(place.loops):
        if loop.var in used:
            used |= set(variables(loop.first, loop.extent))
    others = [loop for loop in place.loops if loop.var in used and loop.var not in of.env]
    if used - {loop.var for loop in others} - set(of.env):
        raise Unknown("a variable is of no loop")
    sizes = extents(place.loops)
    picked = [some(sizes[loop.var]) for loop in others]
    steps = list(itertools.islice(itertools.product(*picked), _MOST))
    env: dict[Any, Any] = dict(of.env)
    for n, loop in enumerate(others):
        step = np.array([turn[n] for turn in steps])[:, None, None]
        env[loop.var] = step + evaluated(loop.first, env)
    return env


def some(count: int) -> Sequence[int]:
    """The first turns of a loop, and the last."""
    return sorted({0, 1, 2, 3, count // 2, count - 1} & set(range(count)))


def part(place: Place, of: Threads, group: int | None = None) -> bool:
    """Whether some threads of a block (of a warp, if `group`) come to a place and others do not,
    or not as often.
    """
    asked = [expr for loop in place.loops for expr in (loop.first, loop.extent)]
    conditions = [g for g in place.guards if lanes_of(g) == 1]
    if not set(variables(*asked, *conditions)) & _differing(place.loops, of):
        return False
    env = _turns(place, [*asked, *conditions], of)
    comes = np.array(True)
    for condition in conditions:
        comes = comes & np.asarray(evaluated(condition, env), bool)
    shape = np.broadcast_shapes(*(np.shape(v) for v in env.values()), of.is_there.shape)
    for value in [comes, *(evaluated(expr, env) for expr in asked)]:
        all_ = np.broadcast_to(value, shape).reshape(-1, group or of.is_there.size).astype(int)
        there = np.broadcast_to(of.is_there, shape).reshape(all_.shape)
        first = np.take_along_axis(all_, there.argmax(1)[:, None], 1)
        if ((all_ != first) & there).any():
            return True
    return False


def _differing(loops: Sequence[Loop], of: Threads) -> set[PrimExpr]:
    """The variables that may differ between threads: theirs, and those of loops that do so."""
    found = set(of.env)
    for loop in loops:
        if set(variables(loop.first, loop.extent)) & found:
            found.add(loop.var)
    return found


@dataclass(frozen=True)
class Addresses:
    """Where the lanes of warps begin to read or write."""

    at: np.ndarray  # [group of lanes that are served at once, lane], in bytes
    active: np.ndarray
    width: int  # bytes of each lane
    element: int  # bytes of one element


def addresses(access: Access, of: Threads) -> Addresses:
    """Where all warps go in some turns of the loops around."""
    if access.open:
        raise Unknown(access.open)
    base = first_of(access.index)
    # Conditions on data are taken to hold.
    guards = [g for g in access.guards if lanes_of(g) == 1 and is_plain(g)]
    env = _turns(Place(access.loops), [base, *guards], of)
    index = np.asarray(evaluated(base, env))
    shape = np.broadcast_shapes(*(np.shape(v) for v in env.values()), of.is_there.shape)
    active = np.broadcast_to(of.is_there, shape)
    for guard in guards:
        active = active & np.asarray(evaluated(guard, env), bool)
    element = bytes_of((), str(dtype_of(access.buffer)).partition("x")[0])
    at = np.broadcast_to(index * element, shape)
    return Addresses(at.reshape(-1, WARP), active.reshape(-1, WARP), _width(access), element)


def first_of(index: PrimExpr) -> PrimExpr:
    """Of a vector's elements, which lie one after the other, the first one's index."""
    return index.base if type(index).__name__ == "Ramp" else index


def _width(access: Access) -> int:
    return bytes_of((), str(dtype_of(access.buffer))) * lanes_of(access.index)


def conflict(found: Addresses, row: int = 0, pad: int = 0) -> int:
    """How many words of one bank the lanes want at once, at worst; 1: no conflict. With `pad`
    bytes more after each `row` bytes than there are.
    """
    at = found.at + (found.at // row * pad if row else 0)
    return int(at_once(at, found.active, found.width).max(initial=1))


def padding(found: Addresses, degree: int) -> tuple[int, int] | None:
    """A row and what to add to it, in elements, so that fewer words are of one bank."""
    steps = np.unique(np.abs(np.diff(found.at[: 4 * WARP], axis=1)))
    rows = [int(step) for step in steps if step > found.element][:8]
    for row, pad in itertools.product(rows, (1, 2, 4)):
        if conflict(found, row, pad * found.element) < degree:
            return row // found.element, pad
    return None


def coalesced(found: Addresses) -> float:
    """Of the sectors of memory that warps' lanes want, the part that they would need if the bytes
    of each warp were neighbours.
    """
    pairs = {(at.tobytes(), on.tobytes()) for at, on in zip(found.at, found.active, strict=True)}
    least = wanted = 0
    for at, on in pairs:
        starts = np.unique(np.frombuffer(at, found.at.dtype)[np.frombuffer(on, bool)])
        every = np.unique(starts[:, None] + np.arange(found.width))
        least += -(-every.size // SECTOR)
        wanted += np.unique(every // SECTOR).size
    return least / wanted if wanted else 1.0
