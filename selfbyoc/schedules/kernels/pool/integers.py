"""Averages whose sums are of int32: of integers, and of levels of 8 bits. The kernels of floats,
but for what is read and what a sum becomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....codegen.info.ops import Ops
from ....graph import OpCall
from ....language.kernel import Kernel
from ....ops.reduce import quotient_of
from ....tvm.types import PrimExpr, Schedule, Tensor
from ...steps.tensors import View
from ..words import only
from . import kernel
from .compute import averages
from .plan import PoolPlan, plan, pool_of


def _of_integers(inputs: Sequence[Tensor], call: OpCall, plan: PoolPlan) -> Any:
    """A sum of int32 over its count, rounded towards zero; what makes integers of bytes is part of
    what reads them.
    """
    (x,) = inputs
    return averages(x, call, plan, quotient_of)


def _of_levels(x: Tensor, x_scale: Tensor, x_zero: Tensor, *, ops: Ops, plan: PoolPlan) -> Any:
    """Exact sums of levels less their zero point, each times its part of the scale."""
    call: Any = pool_of(ops)
    zero, scale = only(x_zero).astype("int32"), only(x_scale)

    def level(*index: PrimExpr) -> PrimExpr:
        return x(*index).astype("int32") - zero

    def mean(total: PrimExpr, count: PrimExpr) -> PrimExpr:
        return total.astype("float32") * (scale / count.astype("float32"))

    return averages(View(x.shape, "int32", level), call, plan, mean)


def _schedule(sch: Schedule, stages: Any, plan: PoolPlan) -> None:
    """Of what is computed as a whole."""
    kernel.schedule(sch, stages if isinstance(stages, Mapping) else {plan.name: stages}, plan)


POOLS = ("avg_pool2d", "global_avg_pool2d")
INTEGER_POOL = Kernel(plan, dict.fromkeys(POOLS, _of_integers), kernel.schedule)
QUANTIZED_POOL = Kernel(plan, _of_levels, _schedule)
