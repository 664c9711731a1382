"""Schedules and traces whose sampling instructions ask `choose`, so that these can be searched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..errors import ScheduleError
from ..tvm import Schedule
from ..tvm.tune import callbacks, decision_of
from ..tvm.types import Attr, Block, Instruction, Loop, PrimExpr, Trace
from .decisions import choose


class SamplingSchedule(Schedule):
    """TensorIR's schedule, in which `decision` is the hand-picked default of what it samples.

    Tile sizes (`sample_perfect_tile`) and categories (`sample_categorical`) are searched; further
    sampling instructions keep their `decision`. (0.27 allows subclasses no attributes.)
    """

    if not hasattr(Schedule, "get_block"):

        def get_block(self, name: str, func_name: str | None = None) -> Block:
            """As 0.17 calls it, so that one schedule serves both; `ops.dense.block` needs no
            name.
            """
            return self.get_sblock(name, func_name)

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> PrimExpr:
        """One of `candidates`; `decision` is the position of the default."""
        kept = _given(decision, "sample_categorical")
        taken = choose(_name(self, "sample_categorical"), range(len(candidates)), kept)
        return super().sample_categorical(list(candidates), list(probs), taken)

    def sample_perfect_tile(
        self,
        loop: Loop,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[PrimExpr]:
        """Factors whose product is the loop's extent; `decision` holds the default ones."""
        kept = tuple(int(f) for f in _given(decision, "sample_perfect_tile"))
        offered = _tiles(int(self.get(loop).extent), n, max_innermost_factor, kept)
        taken = choose(_name(self, "sample_perfect_tile"), offered, kept)
        return super().sample_perfect_tile(loop, n, max_innermost_factor, list(taken))

    def sample_partitioned_tile(self, *args: Attr, **options: Attr) -> list[PrimExpr]:
        """As TensorIR's; needs its `decision`, which is not searched."""
        _given(options.get("decision"), "sample_partitioned_tile")
        return super().sample_partitioned_tile(*args, **options)

    def sample_compute_location(self, block: Block, decision: int | None = None) -> Loop:
        """As TensorIR's; needs its `decision`, which is not searched."""
        return super().sample_compute_location(block, _given(decision, "sample_compute_location"))


def replay(trace: Trace, sch: Schedule) -> None:
    """Do to a schedule what a trace did to another one of the same function; its sampling
    instructions ask `choose`, their decisions there being the defaults.
    """

    def decided(
        inst: Instruction, inputs: Sequence[Attr], attrs: Sequence[Attr], decision: Attr
    ) -> Attr:
        kind = str(inst.kind.name)
        if kind == "SampleCategorical":
            taken = choose(_name(sch, "sample_categorical"), range(len(attrs[0])), int(decision))
            return decision_of(taken)
        if kind != "SamplePerfectTile":
            return decision
        n, limit, extent = int(attrs[0]), int(attrs[1]), int(sch.get(inputs[0]).extent)
        kept = _fitting([int(f) for f in decision], extent)
        return list(choose(_name(sch, "sample_perfect_tile"), _tiles(extent, n, limit, kept), kept))

    with callbacks() as kept:
        trace.apply_to_schedule(sch, remove_postproc=False, decision_provider=kept(decided))


def _fitting(tile: Sequence[int], extent: int) -> tuple[int, ...]:
    """A tile of a loop; for an extent that it does not divide, all of it in the outermost factor:
    another decision made the loop.
    """
    return tuple(tile) if math.prod(tile) == extent else (extent, *[1] * (len(tile) - 1))


def _tiles(extent: int, n: int, limit: int, kept: Sequence[int]) -> list[tuple[int, ...]]:
    """What a loop may be tiled by: up to `limit` innermost (-1: any), or what is there by hand."""
    most = max(limit, kept[-1]) if limit > 0 else extent
    return [tile for tile in _factors(extent, n) if tile[-1] <= most]


def _given(decision: Attr, name: str) -> Attr:
    """A build has to be the same each time."""
    if decision is None:
        raise ScheduleError(f"{name}: expected decision=, the hand-picked default; found none")
    return decision


def _name(sch: Schedule, kind: str) -> str:
    """The kind of a sampling instruction, and how many came before it."""
    before = sum(str(inst.kind.name).startswith("Sample") for inst in sch.trace.insts)
    return f"{kind} {before}"


def _factors(extent: int, n: int) -> Iterator[tuple[int, ...]]:
    """All ways to write an extent as a product of n factors, in order."""
    if n == 1:
        yield (extent,)
        return
    for first in range(1, extent + 1):
        if extent % first == 0:
            yield from ((first, *rest) for rest in _factors(extent // first, n - 1))
