"""The schedule of a recurrent layer: all stages of a step under one loop over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....tvm.types import Block, Loop, Schedule
from ...steps.blocks import Facts, others
from ...steps.carried import carry
from ...steps.loops import start_sums, vectorize, vectorize_copy
from ...steps.parallel import parallel_over
from ...steps.registers import unroll_tile
from ...steps.tiles import BLOCK
from .compute import Layer
from .plan import DIRECTION, UNITS, RecurrentPlan


def schedule(sch: Schedule, made: Mapping[str, Layer], plan: RecurrentPlan) -> None:
    """For each direction and step: the state before it, then tiles of units. A tile sums its
    products in registers, and its cells follow.
    """
    (stages,) = made.values()
    for packed in others(sch, made):
        if packed.reduction:  # the sums of a weight of levels
            loops = list(sch.get_loops(packed.block))
            parallel_over(sch, loops[: len(packed.spatial)], packed.steps)
        else:
            vectorize_copy(sch, packed, plan.lanes)
    _merge(sch, stages, plan)
    _parallelize(sch, stages.groups, plan)
    for block in (b for group in stages.groups for b in group):
        _vectors(sch, block, plan)
    rounding = stages.rounding
    for block in (*stages.before, *([rounding.kept] if rounding else [])):
        vectorize(sch, sch.get_loops(block)[-1], plan.lanes)
    if not plan.is_direct:
        for block in filter(None, stages.result):  # a model may leave one unread
            vectorize_copy(sch, Facts(sch, block), plan.lanes)
    pairs = list(zip(stages.products, stages.groups, strict=True))
    steps = [_product(sch, product, group[0], plan) for product, group in pairs]
    # Last: TensorIR finds no compact dataflow after one.
    for product, k in zip(stages.products, steps, strict=True):
        start_sums(sch, product, k, 3)
    for block in rounding.ranges if rounding else ():
        _, _, first, *lanes = sch.get_loops(block)
        if lanes:
            start_sums(sch, block, first, len(lanes) - 2)
        else:
            sch.decompose_reduction(block, first)


def _merge(sch: Schedule, stages: Layer, plan: RecurrentPlan) -> None:
    """One loop over the steps: the states before each in front, then a nest of tiles a group."""
    for group in stages.groups:
        _share(sch, [_tiled(sch, block, plan) for block in group])
    first = [_copied(sch, block) for block in stages.before]
    if stages.rounding:
        found = stages.rounding
        numbers = (*found.ranges, found.scale, found.point)
        first += [*(_range(sch, block, plan) for block in numbers), _copied(sch, found.kept)]
    _share(sch, [*first, *(sch.get_loops(group[0])[1] for group in stages.groups)])
    for before, after in zip(stages.before, stages.after, strict=True):
        carry(sch, before, after)


def _parallelize(sch: Schedule, groups: Sequence[Sequence[Block]], plan: RecurrentPlan) -> None:
    if plan.parallel == DIRECTION:
        sch.parallel(sch.get_loops(groups[0][0])[0])
    for group in groups if plan.parallel == UNITS else ():
        sch.parallel(sch.get_loops(group[0])[2])


def _tiled(sch: Schedule, block: Block, plan: RecurrentPlan) -> Loop:
    """[direction, step, tile of units, tile of rows, row, block, lane] -> the loop over tiles."""
    t, d, b, j = sch.get_loops(block)
    bo, row = sch.split(b, [None, plan.rows])
    jo, wide, lane = sch.split(j, [None, plan.wide, BLOCK])
    sch.reorder(d, t, jo, bo, row, wide, lane)
    return bo


def _copied(sch: Schedule, block: Block) -> Loop:
    t, d, b, j = sch.get_loops(block)
    sch.split(j, [None, BLOCK])
    sch.reorder(d, t, b)
    return t


def _range(sch: Schedule, block: Block, plan: RecurrentPlan) -> Loop:
    """[direction, step], and of one of lanes [row, block, lane]; -> the loop over the steps."""
    t, d, *inner = sch.get_loops(block)
    sch.reorder(d, t)
    if len(inner) > 1:
        lane, b, j = inner
        sch.reorder(b, j, lane)
        vectorize(sch, lane, plan.lanes)
    return t


def _share(sch: Schedule, loops: Sequence[Loop]) -> None:
    """Loops of several nests, and those around them, as one."""
    if len(loops) > 1:
        sch.merge(*loops)


def _vectors(sch: Schedule, block: Block, plan: RecurrentPlan) -> None:
    vectorize(sch, sch.get_loops(block)[-1], plan.lanes)


def _product(sch: Schedule, product: Block, reader: Block, plan: RecurrentPlan) -> Loop:
    """The sums of a tile in registers, under the tile's loop; -> the loop over k."""
    tile = sch.get_loops(reader)[3]
    sch.compute_at(product, tile, preserve_unit_loops=True)
    sch.set_scope(product, 0, "local")
    *_, row, wide, gate, lane, k = list(sch.get_loops(product))[4:]
    unroll_tile(sch, [k], [row, wide, gate, lane], plan.lanes)
    return k
