"""Each block by itself: what the default schedule does, and others do to what is left."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...machine import Machine
from ...tvm.types import Schedule
from .blocks import Facts, facts
from .elementwise import vectorize_injective
from .loops import Finish
from .parallel import parallel_over
from .reductions import has_short_indices, has_tail, reduce_rows, tile_reduction


def stages(
    sch: Schedule,
    blocks: Sequence[Facts],
    machine: Machine,
    finish: list[Finish],
    among: Collection[str] | None = None,
) -> None:
    """Each block by itself: a reduction as register tiles or along its rows, anything else as
    vectors. `among` names the blocks that may be an epilogue; None: any.
    """
    under_tile: set[str] = set()
    alone = sum(bool(block.reduction) for block in facts(sch)) == 1
    for block in (b for b in blocks if b.reduction):
        tiled = tile_reduction(sch, block, machine, among)
        if tiled is None:
            last = reduce_rows(sch, block, machine, tails=alone and has_short_indices(block))
            finish.extend([last] if last else [])
            continue
        outer, last = tiled
        whole = outer[:-1] if has_tail(sch, outer[-1]) else outer
        if whole:
            parallel_over(sch, whole, block.steps / machine.lanes(block.dtype))
        finish.append(last)
        under_tile |= {c.name for c in block.consumers}
    for block in blocks:
        if not block.reduction and block.name not in under_tile:
            vectorize_injective(sch, block, machine)
