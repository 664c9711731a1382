"""The op info of a composite, before and after its own schedule, on its first case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..codegen.info.op_info import op_info
from ..codegen.info.op_record import OpInfo
from ..ir.emit import emit
from ..language.case import Case
from ..language.composite import Composite
from ..partition import partition_for_tefuse
from ..tvm import GENERATION
from ..tvm.types import Target
from .kernels import kernels


@dataclass(frozen=True)
class OpTable:
    """One kernel's ops as stacked and as scheduled."""

    composite: str
    case: str
    level: str
    before: tuple[OpInfo, ...]
    after: tuple[OpInfo, ...]

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        ops = {"before": self.before, "after": self.after}
        return {
            "composite": self.composite, "case": self.case, "level": self.level,
            **{when: [info.to_dict() for info in infos] for when, infos in ops.items()},
        }  # fmt: skip


def op_tables(composites: Iterable[Composite], target: Target) -> list[OpTable]:
    """One table for each composite that has a case on this generation."""
    found = []
    for composite in composites:
        case = next((c for c in composite.cases if GENERATION in c.generations), None)
        if case is not None:
            found.append(_table(composite, case, target))
    return found


def _table(composite: Composite, case: Case, target: Target) -> OpTable:
    rng = np.random.default_rng(0)
    constants = {
        name: rng.integers(-9, 9, case.args[name][0]).astype(case.args[name][1])
        for name in case.constants
    }
    mod = emit(case.program or composite.pattern, case.args, constants)
    parted = partition_for_tefuse(mod, target=target, composites=[composite])
    stacked, scheduled = kernels(parted)[0].schedule(target)
    ops = op_info(scheduled.mod["main"])
    return OpTable(composite.name, case.name, scheduled.level.name, stacked.ops, ops)
