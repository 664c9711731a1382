"""Stages that carry on what another one computed a step before."""

from __future__ import annotations

from ...tir.recurrences import OF
from ...tvm.types import Block, Schedule


def carry(sch: Schedule, before: Block, state: Block) -> None:
    """The block `before` gives what `state` computed a step before; both have the same axes, the
    step first, and are under one serial loop over the steps.
    """
    sch.annotate(before, OF, str(sch.get(state).name_hint))
