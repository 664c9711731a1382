"""Op info for functions that no composite made: passes on Relax, lowering and tasks on Relay."""

from __future__ import annotations

from .._tvm import GENERATION

if GENERATION == "relax":
    from ._relax import AttachOpInfo, FuseTIR

    __all__ = ["AttachOpInfo", "FuseTIR"]
else:
    from ._relay import extract_tasks, lower, op_info_attached

    __all__ = ["extract_tasks", "lower", "op_info_attached"]
