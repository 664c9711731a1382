"""Transposes and the like in front of sums: no stage, but another way to read an argument."""

from __future__ import annotations

from ...tvm import TensorLoad
from ...tvm.types import Schedule
from ..steps.blocks import Facts, facts
from .chain import plain


def inline_moves(sch: Schedule) -> None:
    """Inline blocks that copy each element from another place: what is read again comes from shared
    memory, which threads fill in the order of the argument.
    """
    for block in facts(sch):
        if not block.is_output and _is_move(block):
            sch.compute_inline(block.block)


def _is_move(block: Facts) -> bool:
    value = getattr(block.stmt.body, "value", None)
    if block.reduction or not isinstance(value, TensorLoad):
        return False
    return all(plain(i, block) is not None or hasattr(i, "value") for i in value.indices)
