"""The schedule of direct convolutions: stage by stage, elementwise ops on tiles that are in L1."""

from __future__ import annotations

from typing import Any

from ...._tvm import region_buffer
from ....codegen.slices import is_concatenate
from ....machine import machine
from ...steps.blocks import Facts, facts
from ...steps.loops import inline_injective
from ...steps.reductions import stages
from ..winograd import schedule as winograd_schedule
from ..winograd.compute import WinogradStages
from . import pointwise_tiles
from .channel_tiles import tile_channels
from .direct import plan_of
from .direct_tiles import Work, image_of, is_copy, pad_rows, tile
from .float_conv import winograd_plan
from .lanes import Plan, decided


def schedule(sch: Any, ops: Any, target: Any) -> None:
    """Padded copies, then tiles, each stage in parallel: two regions (1-2 us) cost less than a
    recomputed halo.
    """
    winograd = _winograd_stages(sch)
    joined = winograd_schedule.join(sch, list(winograd.values()))
    tiled = [b for b in facts(sch) if b.name.endswith(("_tiles", "_channels"))]
    plans = {b.name: _plan(b, ops) for b in tiled}
    pads = {_stem(name) + "_pad": p for name, p in plans.items()}
    # What stands before a padded copy is applied to the tiles: the copy, which tests for the
    # border, only copies.
    # What a concatenate copies becomes slices of its result (codegen/slices.py).
    copies = [b for b in facts(sch) if b.name in pads or is_copy(b.name) or is_concatenate(b.stmt)]
    stay = {p.name for b in copies for p in b.producers} | pointwise_tiles.stays(sch)
    inline_injective(sch, stay | joined)
    work = Work(sch, machine(target))
    for name, found in winograd.items():
        read = [region_buffer(r).shape for r in sch.get(found.sums).reads]
        (packed,) = [[int(e) for e in shape] for shape in read if len(shape) == 5]
        plan = winograd_plan(getattr(ops, name), work.cpu, packed)
        assert plan is not None, f"{name} is computed by Winograd"
        winograd_schedule.schedule(work, found, plan, image_of(Facts(sch, found.pixels)))
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


def _winograd_stages(sch: Any) -> dict[str, WinogradStages]:
    """The stages of every Winograd convolution, by the name of its op."""
    found: dict[str, dict[str, Any]] = {}
    for block in facts(sch):
        op, wino, role = block.name.partition("_wino_")
        if wino:
            found.setdefault(op, {})[role] = block.block
    return {op: WinogradStages(**roles, result=None) for op, roles in found.items()}


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
