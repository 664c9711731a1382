"""A match -> the plan of its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import ComputeError, SelfbyocError
from ..graph import OpCall
from ..machine import Machine, machine_at_hand
from ..ops.attrs import Noted
from .info.op_record import OpInfo, describe
from .info.ops import Ops, Packing

if TYPE_CHECKING:
    from ..language.match.match import Match

Shape = Sequence[int]


def bare(call: OpCall) -> OpInfo:
    """An op's info before anything is stacked."""
    ins, outs = ([(v.shape, v.dtype) for v in side] for side in (call.inputs, call.outputs))
    if not isinstance(call.attrs, Noted):
        return describe(call.name, call.kind, call.attrs, ins, outs)
    info = describe(call.name, call.kind, call.attrs.raw, ins, outs)
    return replace(info, attrs=Noted(info.attrs, call.attrs.names))


def ops_of(match: Match, packed: Mapping[str, Shape | None]) -> Ops:
    """The ops of a match as its plan sees them; `packed` as for `plan_of`."""
    operands = {
        (call.name, i): Packing(
            name, name in packed, packed.get(name), value.seven_bits, value.held, value.as_held
        )
        for call in match.ops
        for i, value in enumerate(call.inputs)
        if (name := match.role(call, i))
    }
    return Ops([bare(call) for call in match.ops], operands=operands)


def plan_of(match: Match, packed: Mapping[str, Shape | None], cpu: Machine | None = None) -> Any:
    """The plan for a machine, or that at hand; None where the composite has no kernel.

    `packed` are the arguments that the caller passes packed: in this shape, or None where this very
    plan decides it. Elementwise ops that joined the kernel are none of the plan's.
    """
    match = match.own
    kernel = match.composite.kernel
    if kernel is None:
        return None
    try:
        return kernel.plan(ops_of(match, packed), cpu or machine_at_hand())
    except SelfbyocError:
        raise
    except Exception as err:  # whatever a user's function raises is the composite's error
        text = f"composite {match.composite.name}: its plan raised {type(err).__name__}: {err}"
        raise ComputeError(text) from err
