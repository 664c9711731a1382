"""Weights of halves in convolutions: which stay so, and the floats of what a task reads.

Where lanes are channels, a vector of halves becomes floats in a register. Where they are pixels,
a weight is read element by element: some channels of a block become floats once for all tiles
of a task, and lie in L1 then.
"""

from __future__ import annotations

from ....graph import OpCall
from ....tvm.types import Block, Loop
from ...steps.blocks import Facts
from ...steps.images import Work
from ...steps.loops import vectorize
from ..winograd.plan import WinogradPlan
from .plan import ConvPlans


def widens(plans: ConvPlans, call: OpCall) -> str:
    """Why the weight of a convolution is packed as floats."""
    is_transformed = isinstance(plans.of(call.name), WinogradPlan)
    return "Winograd's transform of it has more bits" if is_transformed else ""


def widen(work: Work, floats: Block, at: Loop, vector: int) -> None:
    """The floats that an iteration of a loop reads, in vectors."""
    sch = work.sch
    sch.compute_at(floats, at, preserve_unit_loops=True)
    rows = list(sch.get_loops(floats))[-1]
    if int(sch.get(rows).extent) > 1:
        vectorize(sch, rows, vector)
    work.done.add(Facts(sch, floats).name)
