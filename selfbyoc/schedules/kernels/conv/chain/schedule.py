"""The schedule of conv2d-relu-conv2d-relu, and its kernel."""

from __future__ import annotations

from .....graph import OpCall
from .....language.kernel import Kernel
from .....tvm.types import Schedule, Tensor
from ....steps.blocks import Facts
from ....steps.images import Work
from .. import kernel, staged
from ..pack import pack as pack_direct
from ..padding import pad_rows
from ..pixels.schedule import tile_under, tiles_of
from ..plan import ConvPlans
from ..staged import StagedStages
from ..widened import widens
from .compute import MeltedStages, compute
from .plan import ChainPlan, Melted, plan_chain


def pack(weight: Tensor, plan: ChainPlan, call: OpCall) -> Tensor:
    """[O, I, H, W] as the convolution that reads it wants it."""
    return kernel.pack(weight, plan, call) if isinstance(plan, ConvPlans) else pack_direct(weight)


def schedule(sch: Schedule, stages: MeltedStages | StagedStages, plan: ChainPlan) -> None:
    """Melted, if the compute is; else stage by stage."""
    if isinstance(plan, ConvPlans):
        assert isinstance(stages, StagedStages), f"{plan} is computed stage by stage"
        staged.schedule(sch, stages, plan)
    else:
        assert isinstance(stages, MeltedStages), f"{plan} is computed by blocks of rows"
        _melted(sch, stages, plan)


def _melted(sch: Schedule, stages: MeltedStages, m: Melted) -> None:
    work = Work(sch)
    # 1. A task is a block of rows of the result; its channels follow one another, with the weights
    # in L1.
    outer = tiles_of(work, Facts(sch, stages.second), m.second, floats=stages.floats_2)
    task = sch.fuse(*outer[:2])
    # 2. What the block reads is padded row by row, and each row's tiles are computed just before.
    sch.compute_at(stages.between, task, preserve_unit_loops=True)
    *_, channel, lane = sch.get_loops(stages.between)
    first = Facts(sch, stages.tiles)
    row, column = sch.split(lane, [None, m.second.lanes.pitch])
    b, r = sch.split(channel, [None, first.shape[-3]])
    sch.reorder(row, b, r, column)
    tile_under(work, first, m.first, b, floats=stages.floats_1)
    sch.parallel(task)
    if stages.copy is not None:
        pad_rows(work, Facts(sch, stages.copy), m.first.lanes, m.first.vector)
    for last in work.finish:
        last()


def _widens(plan: ChainPlan, call: OpCall) -> str:
    return widens(plan, call) if isinstance(plan, ConvPlans) else ""


CHAIN = Kernel(plan_chain, compute, schedule, {"w1": pack, "w2": pack}, widens=_widens)
