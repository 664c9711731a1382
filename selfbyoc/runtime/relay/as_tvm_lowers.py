"""Relay: what is done to the functions that TVM lowers itself."""

from __future__ import annotations

from collections.abc import Callable

from ...tvm import tvm
from ...tvm.c import for_c
from ...tvm.indices import within_buffers
from ...tvm.starts import with_true_starts
from ...tvm.types import PrimFunc, Target


def lowering(target: Target) -> dict[str, object]:
    """Options of the PassContext, for a build for this target."""
    changes = [within_buffers, with_true_starts]
    if str(tvm.target.Target(target).kind) == "c":
        changes.append(for_c)
    return {"tir.add_lower_pass": [(0, _pass(change)) for change in changes]}


def _pass(change: Callable[[PrimFunc], PrimFunc]) -> tvm.transform.Pass:
    return tvm.tir.transform.prim_func_pass(
        lambda func, *_: change(func), opt_level=0, name=change.__name__
    )
