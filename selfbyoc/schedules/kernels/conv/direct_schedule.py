"""The schedule of direct convolutions: stage by stage, elementwise ops on tiles that are in L1."""

from __future__ import annotations

from typing import Any

from ....codegen.slices import is_concatenate
from ....machine import machine
from ...steps.blocks import Facts, facts
from ...steps.loops import inline_injective
from ...steps.reductions import stages
from ..winograd import schedule as winograd_schedule
from . import pointwise_tiles
from .channel_tiles import tile_channels
from .direct import plan_of
from .direct_tiles import Work, is_copy, pad_rows, tile
from .lanes import Plan, decided


def schedule(sch: Any, ops: Any, target: Any) -> None:
    """Padded copies, then tiles, each stage in parallel: two regions (1-2 us) cost less than a
    recomputed halo.
    """
    winograd = winograd_schedule.join(sch)
    tiled = [b for b in facts(sch) if b.name.endswith(("_tiles", "_channels"))]
    plans = {b.name: _plan(b, ops) for b in tiled}
    pads = {_stem(name) + "_pad": p for name, p in plans.items()}
    # What stands before a padded copy is applied to the tiles: the copy, which tests for the
    # border, only copies.
    # What a concatenate copies becomes slices of its result (codegen/slices.py).
    copies = [b for b in facts(sch) if b.name in pads or is_copy(b.name) or is_concatenate(b.stmt)]
    stay = {p.name for b in copies for p in b.producers} | pointwise_tiles.stays(sch)
    inline_injective(sch, stay | winograd.keys())
    work = Work(sch, machine(target))
    winograd_schedule.transform_all(work, winograd, ops)
    for block in facts(sch):
        if block.name.endswith("_channels"):
            tile_channels(work, block)
        elif block.name.endswith("_product"):
            pointwise_tiles.tile_pixels(work, block)
        elif block.name in plans:
            tile(work, block, plans[block.name])
    for block in facts(sch):
        if block.name in pads and block.name not in work.done:
            pad_rows(work, block, pads[block.name])
    stages(sch, [b for b in facts(sch) if b.name not in work.done], work.cpu, work.finish)
    for last in work.finish:
        last()


def _plan(block: Facts, ops: Any) -> Plan:
    """The plan of a block of tiles, as its compute has it."""
    view = view_of(block, ops)
    usual = plan_of(view)
    return usual if block.name.endswith("_channels") else decided(usual, view.name)


def view_of(block: Facts, ops: Any) -> Any:
    """The op behind a block of tiles."""
    return getattr(ops, _stem(block.name).removesuffix("_sum"))


def _stem(name: str) -> str:
    return name.removesuffix("_tiles").removesuffix("_channels")


CPU = {"llvm": schedule, "c": schedule}  # other kinds of target take the default schedule
