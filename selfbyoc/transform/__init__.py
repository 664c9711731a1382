"""`Partition`, a pass; and for functions that no composite made op info, and on Relax a schedule:
passes on Relax, lowering and tasks on Relay.
"""

from __future__ import annotations

from ..tvm import GENERATION
from .partition import Partition

if GENERATION == "relax":
    from ..runtime.relax.rest import ScheduleRest
    from .relax import AttachOpInfo
    from .relax.fuse import FuseTIR

    __all__ = ["AttachOpInfo", "FuseTIR", "Partition", "ScheduleRest"]
else:
    from .relay import extract_tasks, lower, op_info_attached

    __all__ = ["Partition", "extract_tasks", "lower", "op_info_attached"]
