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
from .pixels.plan import PixelPlan
from .plan import ConvPlan, ConvPlans


def widens(plans: ConvPlans, call: OpCall) -> str:
    """Why the weight of a convolution is packed as floats."""
    return why(plans.of(call.name), call)


def why(plan: ConvPlan, call: OpCall) -> str:
    """The same by the plan of the convolution."""
    if isinstance(plan, WinogradPlan):
        return "Winograd's transform of it has more bits"
    if isinstance(plan, PixelPlan) and call.attrs["groups"] > 1 == call.inputs[1].shape[1]:
        return "lanes are pixels, and each channel has few weights"
    return ""


def widen(work: Work, floats: Block, at: Loop, vector: int) -> None:
    """The floats that an iteration of a loop reads, in vectors."""
    sch = work.sch
    sch.compute_at(floats, at, preserve_unit_loops=True)
    rows = list(sch.get_loops(floats))[-1]
    if int(sch.get(rows).extent) > 1:
        vectorize(sch, rows, vector)
    work.done.add(Facts(sch, floats).name)
