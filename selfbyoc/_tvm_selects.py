"""Choices that are known once loops are unrolled."""

from __future__ import annotations

from typing import Any

from ._tvm import GENERATION, tir

if GENERATION == "relax":
    import tvm_ffi


def without_decided(func: Any) -> Any:
    """A lowered PrimFunc where a Select among vectors whose condition is known is what it selects.

    TVM folds those of scalars only, and a Select reads both sides: of a window's tap in the padding
    an element outside of the buffer.
    """

    def chosen(select: Any) -> Any:
        condition = select.condition
        if isinstance(condition, tir.Broadcast):
            condition = condition.value
        if not isinstance(condition, tir.IntImm):
            return select
        return select.true_value if int(condition) else select.false_value

    if GENERATION == "relax":
        return tvm_ffi.structural_map(func, ((tir.Select, chosen),))
    return func.with_body(tir.stmt_functor.ir_transform(func.body, None, chosen, ["tir.Select"]))
