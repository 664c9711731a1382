"""`transform_layout` that op info can follow, whatever the ops are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...tvm.types import Block, PrimExpr, Schedule
from .op_info import op_info
from .op_record import OpInfo
from .unknown import UNKNOWN


def transform_layout(
    sch: Schedule,
    block: Block,
    buffer: tuple[str, int],
    index_map: Callable[..., Sequence[PrimExpr]],
) -> bool:
    """`sch.transform_layout(block, buffer, index_map)`, so that no attribute becomes UNKNOWN.

    buffer     ("read", 0): the first buffer that the block reads; ("write", 0) that it writes
    index_map  a function of the old indices -> the list of the new ones

    Where the ops around the buffer cannot be written in the new layout, the block gets a copy in
    that layout, and all others keep the original. -> whether the buffer itself was transformed.
    Raises what the schedule raises.
    """
    trial = sch.copy()
    trial.transform_layout(block, buffer, index_map)
    in_place = _unknowns(op_info(trial)) <= _unknowns(op_info(sch))
    if not in_place:
        side, index = buffer
        if side == "read":
            sch.cache_read(block, index, "global", [block])
        else:
            sch.cache_write(block, index, "global")
    sch.transform_layout(block, buffer, index_map)
    return in_place


def _unknowns(infos: Sequence[OpInfo]) -> set[tuple[str, str]]:
    """Everything that reads UNKNOWN, as (op, what)."""
    found = set()
    for info in infos:
        found |= {(info.name, name) for name, value in info.attrs.items() if value is UNKNOWN}
        for side in ("inputs", "outputs"):
            for position, tensor in enumerate(getattr(info, side)):
                if tensor.layout is UNKNOWN or tensor.shape is UNKNOWN:
                    found.add((info.name, f"{side}[{position}]"))
    return found
