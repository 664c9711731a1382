"""`Partition`, a pass; and for functions that no composite made op info, and on Relax a schedule,
other layouts and the way back to ops: passes on Relax, lowering and tasks on Relay.
"""

from __future__ import annotations

import importlib

from .partition.partition_pass import Partition
from .tvm import GENERATION

if GENERATION == "relax":
    from .codegen.info.relax import AttachOpInfo
    from .codegen.info.relax.fuse import FuseTIR
    from .codegen.raising.relax import RaiseOps
    from .codegen.raising.relax.move import MoveLayouts
    from .runtime.relax.rest import ScheduleRest

    __all__ = ["AttachOpInfo", "FuseTIR", "MoveLayouts", "Partition", "RaiseOps", "ScheduleRest"]
else:
    from .codegen.info.relay import extract_tasks, lower, op_info_attached

    __all__ = ["Partition", "extract_tasks", "lower", "op_info_attached"]

importlib.import_module(".api", __package__)  # who imports this alone needs the external compiler
