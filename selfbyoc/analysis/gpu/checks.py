"""What can be told of a GPU kernel without running it: barriers that some threads miss, memory that
threads share without one, banks that many lanes want at once, memory and threads beyond the
device's limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from ...codegen.external import External
from ...codegen.schedule import schedule_external
from ...errors import LoweringError
from ...machine.gpu import WARP
from ...tir.lanes import found_in
from ...tir.lowering import finished
from ...tvm import target_dict
from ...tvm.types import PrimExpr, Target
from ...tvm.values import Unknown
from ..bounds.accesses import Access
from ..bounds.enumerate import extents, variables
from ..bounds.expressions import LOADS
from .lowered import Launch, Lowered, lowered
from .races import races
from .walk import BARRIER, Device, Sync, device, scope
from .warps import Threads, addresses, coalesced, conflict, padding, part, threads

T = TypeVar("T")

# Of a CUDA device, for kernels that ask for no more.
MAX_THREADS, MAX_SHARED = 1024, 48 * 1024
LONG = 64  # terms of a sum that is worth sharing


@dataclass(frozen=True)
class Conflict:
    """A load or store of shared memory that a warp does in several steps."""

    buffer: str
    is_store: bool
    degree: int  # words of one bank at once
    times: int  # turns of the loops around, in one thread
    padding: tuple[int, int] | None  # a row, and how many elements more would make it fewer
    index: str

    def __str__(self) -> str:
        what = "store to" if self.is_store else "load of"
        text = f"{what} {self.buffer}[{self.index}]: {self.degree} words of one bank"
        if self.padding is None:
            return f"{text}, {self.times} times"
        row, pad = self.padding
        return f"{text}, {self.times} times; rows of {row} + {pad} would have fewer"


@dataclass(frozen=True)
class Scattered:
    """A load or store of global memory whose lanes are no neighbours."""

    buffer: str
    is_store: bool
    used: float  # the part of its sectors that is needed
    times: int


@dataclass(frozen=True)
class Kernel:
    """What is known of one `__global__` function."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int  # bytes
    barriers: int
    divergent: tuple[str, ...]  # barriers and shuffles that some threads miss
    races: tuple[str, ...]  # what is written and used with no barrier between
    conflicts: tuple[Conflict, ...]
    scattered: tuple[Scattered, ...]
    same: tuple[str, ...]  # what every thread of a block sums by itself, the same for all
    unknown: tuple[str, ...]  # accesses of which nothing is told

    @property
    def threads(self) -> int:
        """Of a block."""
        return prod(self.block)


@dataclass(frozen=True)
class Checked:
    """The kernels of one function."""

    kernels: tuple[Kernel, ...]
    max_threads: int
    max_shared: int

    @property
    def wrong(self) -> list[str]:
        """What makes a kernel hang, compute nonsense or not start."""
        return [text for kernel in self.kernels for text in self._wrong(kernel)]

    @property
    def slow(self) -> list[str]:
        """Bank conflicts in loops that a padding would avoid, and sums that all threads repeat."""
        found = [c for kernel in self.kernels for c in kernel.conflicts]
        conflicts = [str(c) for c in found if c.padding is not None and c.times > 1]
        return conflicts + [text for kernel in self.kernels for text in kernel.same]

    def _wrong(self, kernel: Kernel) -> Iterator[str]:
        yield from (f"{kernel.name}: {text}" for text in kernel.divergent + kernel.races)
        if kernel.threads > self.max_threads:
            yield f"{kernel.name}: {kernel.threads} threads of at most {self.max_threads}"
        if kernel.shared > self.max_shared:
            yield f"{kernel.name}: {kernel.shared} bytes shared of at most {self.max_shared}"


def check(made: Lowered) -> Checked:
    """All checks of a lowered function."""
    known = target_dict(made.target)
    limits = (
        int(known.get("max_threads_per_block") or known.get("max_num_threads") or MAX_THREADS),
        int(known.get("max_shared_memory_per_block") or MAX_SHARED),
    )
    return Checked(tuple(map(kernel_of, made.launches)), *limits)


def lowered_right(source: External, target: Target) -> Lowered:
    """An external function for a GPU. Raises LoweringError where it is wrong to whoever reads it:
    what runs right on this CPU, or on one GPU, may compute nonsense on another one.
    """
    _, scheduled = schedule_external(source, target)
    made = lowered(finished(scheduled.mod["main"], target), target)
    if wrong := check(made).wrong:
        raise LoweringError("; ".join(wrong))
    return made


def kernel_of(launch: Launch) -> Kernel:
    """All checks of one device function."""
    found = device(launch.func)
    of = threads(found.threads)
    shared = [access for access in found.accesses if scope(access) == "shared"]
    global_ = [access for access in found.accesses if scope(access) == "global"]
    unknown: list[str] = []
    return Kernel(
        launch.name,
        launch.grid,
        launch.block,
        sum(root.bytes for root in {a.root: a.root for a in shared}.values()),
        sum(sync.kind == BARRIER for sync in found.syncs),
        tuple(_divergent(found, of)),
        tuple(races(found, of)),
        tuple(_each(shared, of, _conflict, unknown)),
        tuple(_each(global_, of, _scattered, unknown)),
        tuple(_each(found.accesses, of, _same, unknown)),
        tuple(unknown),
    )


def _divergent(found: Device, of: Threads) -> Iterator[str]:
    for sync in found.syncs:
        if why := _why_divergent(sync, of):
            yield why


def _why_divergent(sync: Sync, of: Threads) -> str:
    group = None if sync.kind == BARRIER else WARP
    who = "threads of a block" if sync.kind == BARRIER else "lanes of a warp"
    try:
        if part(sync.place, of, group):
            return f"a {sync.kind} that some {who} miss: {_conditions(sync)}"
        if any(part(place, of, group) for place in sync.after):
            return f"a {sync.kind} after some {who} have returned"
    except Unknown as err:
        return f"a {sync.kind} whose condition is not known to be one for all {who}: {err}"
    return ""


def _conditions(sync: Sync) -> str:
    asked = [str(guard) for guard in sync.place.guards]
    asked += [f"{loop.var} < {loop.extent}" for loop in sync.place.loops if _is_open(loop.extent)]
    return " and ".join(asked)


def _is_open(extent: PrimExpr) -> bool:
    return not hasattr(extent, "value") and not isinstance(extent, int)


def _each(
    accesses: list[Access],
    of: Threads,
    look: Callable[[Access, Threads], T | None],
    unknown: list[str],
) -> Iterator[T]:
    """What `look` finds, each once: an unrolled loop repeats itself."""
    seen = set()
    for access in accesses:
        try:
            found = look(access, of)
        except Unknown as err:
            unknown.append(f"{access.root.name}[{access.index}]: {err}")
            continue
        if found is not None and found not in seen:
            seen.add(found)
            yield found


def _conflict(access: Access, of: Threads) -> Conflict | None:
    where = addresses(access, of)
    degree = conflict(where)
    if degree == 1:
        return None
    more = padding(where, degree)
    name, index = str(access.root.name), str(access.raw)
    return Conflict(name, access.is_store, degree, _times(access), more, index)


def _scattered(access: Access, of: Threads) -> Scattered | None:
    used = coalesced(addresses(access, of))
    if used == 1:
        return None
    return Scattered(str(access.root.name), access.is_store, round(used, 3), _times(access))


def _same(access: Access, of: Threads) -> str | None:
    """A long sum that is no thread's own: neither where it is nor what it is of depends on one."""
    is_sum = access.is_store and scope(access) == "local" and _times(access) >= LONG
    if not is_sum or not _loads(access) or set(variables(access.raw, access.value)) & set(of.env):
        return None
    return f"all threads of a block sum {access.root.name} by themselves, {_times(access)} terms"


def _loads(access: Access) -> list[PrimExpr]:
    return found_in(access.value, lambda node: type(node).__name__ in LOADS)


def _times(access: Access) -> int:
    """Turns of the loops around, of one thread."""
    sizes = extents(access.loops)
    return prod(sizes[loop.var] for loop in access.loops if not loop.is_parallel)
