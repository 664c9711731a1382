"""The default schedule: any stacked function, correct, parallel and vectorised, with no schedule of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.info.ops import Ops
from ..language.types import Schedule, Target
from ..machine import machine
from .steps.blocks import Facts, facts
from .steps.loops import Finish, inline_injective
from .steps.stages import stages


def schedule(sch: Schedule, ops: Ops, target: Target) -> None:
    """Stage by stage: melting stages into one another is left to a composite's own schedule."""
    # 1. What is elementwise joins its reader.
    inline_injective(sch)
    # 2. The other stages one by one; accumulators are set apart from the sums at the very end.
    for last in schedule_blocks(sch, facts(sch), target):
        last()


def schedule_blocks(sch: Schedule, blocks: Sequence[Facts], target: Target) -> list[Finish]:
    """These blocks one by one, no other one touched; -> what to call when all are scheduled."""
    finish: list[Finish] = []
    if str(target.kind) in ("llvm", "c"):
        stages(sch, blocks, machine(target), finish, {block.name for block in blocks})
    else:
        _gpu(sch, blocks)
    return finish


def _gpu(sch: Schedule, blocks: Sequence[Facts]) -> None:
    """A CUDA-like target: every block is bound to threads, one element each."""
    per_block = 256
    for block in blocks:
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
