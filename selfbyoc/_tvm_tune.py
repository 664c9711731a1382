"""What of TVM's tuning was renamed between its two generations, under one name of ours."""

from __future__ import annotations

from typing import Any

from ._tvm import GENERATION, tvm


def apply_trace(sch: Any, trace: Any) -> None:
    """Apply a trace of MetaSchedule (JSON data) to a schedule of the function it was made for."""
    tir = tvm.s_tir if GENERATION == "relax" else tvm.tir
    tir.schedule.Trace.apply_json_to_schedule(trace, sch)
