"""The default schedule: any stacked function, correct, parallel and vectorised, with no schedule of its own."""

from __future__ import annotations

from typing import Any

from .blocks import facts
from .machine import machine
from .steps import (
    Finish,
    inline_injective,
    parallel_over,
    reduce_rows,
    tile_reduction,
    vectorize_injective,
)


def schedule(sch: Any, ops: Any, target: Any) -> None:
    """Stage by stage: melting stages into one another is left to a composite's own schedule."""
    if str(target.kind) not in ("llvm", "c"):
        _gpu(sch, target)
        return
    cpu = machine(target)
    # 1. What is elementwise joins its reader.
    inline_injective(sch)
    # 2. Reductions become register tiles under the elementwise block behind them, or vectors along their rows.
    reductions = [b for b in facts(sch) if b.reduction]
    under_tile: set[str] = set()
    finish: list[Finish | None] = []
    for block in reductions:
        tiled = tile_reduction(sch, block, cpu)
        if tiled is None:
            finish.append(reduce_rows(sch, block, cpu))
            continue
        outer, last = tiled
        parallel_over(sch, outer)
        finish.append(last)
        under_tile |= {c.name for c in block.consumers}
    # 3. What is left is elementwise or a copy.
    done = under_tile | {b.name for b in reductions}
    for block in facts(sch):
        if not block.reduction and block.name not in done:
            vectorize_injective(sch, block, cpu)
    # 4. Accumulators are set apart from the sums at the very end.
    for last in filter(None, finish):
        last()


def _gpu(sch: Any, target: Any) -> None:
    """A CUDA-like target: every block is bound to threads, one element each."""
    per_block = 256
    inline_injective(sch)
    for block in facts(sch):
        loops = list(sch.get_loops(block.block))
        spatial = [loops[a.position] for a in block.spatial]
        if not spatial:
            spatial = [sch.add_unit_loop(block.block)]
        else:
            sch.reorder(*spatial, *(loops[a.position] for a in block.reduction))
        fused = sch.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        outer, inner = sch.split(fused, [None, per_block])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
