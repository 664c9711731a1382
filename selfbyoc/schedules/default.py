"""The default schedule: any stacked function, correct, parallel and vectorised, with no schedule of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.info.ops import Ops
from ..errors import ScheduleError
from ..machine import machine
from ..machine.gpu import gpu
from ..tvm.types import Schedule, Target
from .gpu.apart import each_apart
from .gpu.block import melt_for_gpu
from .gpu.chain import NoChain, chain_of
from .gpu.images import image_plan, images_of, melt_images
from .gpu.moves import inline_moves
from .gpu.plan import block_plan
from .steps.blocks import Facts, facts
from .steps.loops import Finish, inline_injective
from .steps.stages import stages


def schedule(sch: Schedule, ops: Ops | None, target: Target, told: str = "") -> str:
    """Stage by stage: melting stages into one another is left to a composite's own schedule, but on
    a GPU -> what was planned there. `told` is why it should do no more than it must, if so.
    """
    if not _is_cpu(target):
        _check_stages(sch)
    # 1. What is elementwise joins its reader.
    inline_injective(sch)
    if not _is_cpu(target):
        return _for_gpu(sch, target, told)
    # 2. The other stages one by one; accumulators are set apart from the sums at the very end.
    for last in schedule_blocks(sch, facts(sch), target):
        last()
    return ""


def _check_stages(sch: Schedule) -> None:
    """Raise ScheduleError for a nest in one piece, as that of a recurrent layer: it has no stage
    whose elements could be shared among threads.
    """
    for block in facts(sch):
        if not len(block.stmt.writes):
            raise ScheduleError(f"{block.name} is one nest of loops, which runs on CPUs alone")


def schedule_blocks(sch: Schedule, blocks: Sequence[Facts], target: Target) -> list[Finish]:
    """These blocks one by one, no other one touched; -> what to call when all are scheduled."""
    finish: list[Finish] = []
    if _is_cpu(target):
        stages(sch, blocks, machine(target), finish, {block.name for block in blocks})
    else:
        each_apart(sch, blocks, gpu(target))
    return finish


def _is_cpu(target: Target) -> bool:
    return str(target.kind) in ("llvm", "c")


def _for_gpu(sch: Schedule, target: Target, told: str) -> str:
    """One kernel where all stages share rows, or are images; else one for each stage."""
    inline_moves(sch)
    if told:
        return _apart(sch, target, told)
    try:
        chain = chain_of(facts(sch))
        plan = block_plan(chain, gpu(target))
    except NoChain as why:
        return _for_gpu_by_images(sch, target, str(why))
    melt_for_gpu(sch, chain, plan, gpu(target))
    return str(plan)


def _for_gpu_by_images(sch: Schedule, target: Target, no_rows: str) -> str:
    try:
        images = images_of(facts(sch))
        plan = image_plan(images, gpu(target))
    except NoChain as why:
        return _apart(sch, target, f"{no_rows}; {why}")
    melt_images(sch, images, plan, gpu(target))
    return str(plan)


def _apart(sch: Schedule, target: Target, why: str) -> str:
    schedule_blocks(sch, facts(sch), target)
    return f"a kernel for each stage: {why}"
