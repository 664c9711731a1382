"""A kernel family: four functions over one frozen plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kernel:
    """How a composite is packed, computed and scheduled, by one plan.

    plan      `plan(ops, machine)` -> a frozen value with a short text (`str(plan)`). Pure; the only
              reader of the machine, the only caller of `choose`. `ops.packing(op, i)` says whether
              and how input i of an op comes packed.
    pack      {argument: `pack(tensor, plan)`}, or `pack(tensor, plan, call)` with the op that reads
              the argument
    compute   `compute(argument=..., ops=, plan=)` for the whole composite, or {op kind:
              `compute(inputs, call, plan)`}. Returns tensors, or a dataclass of stages by role: its
              field `result` is what the composite, or the op, computes.
    schedule  `schedule(sch, stages, plan)`: primitives only. `stages` is what compute returned,
              with blocks for tensors; of computes by kind, {name of the op: its stages}.
    widens    `widens(plan, call)` -> why the weight that an op reads is packed as floats where a
              model has halves, or nothing where it stays as it is: an element that the compute
              reads is a float in any case. None: no weight stays.
    targets   the kinds of target that the schedule is for
    """

    plan: Callable[[Any, Any], Any]
    compute: Callable[..., Any] | Mapping[str, Callable[..., Any]]
    schedule: Callable[[Any, Any, Any], None]
    pack: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    widens: Callable[[Any, Any], str] | None = None
    targets: tuple[str, ...] = ("llvm", "c")
