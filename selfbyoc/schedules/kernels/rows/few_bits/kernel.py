"""A dense layer of few bits: its sums, by rows of floats or of levels, and the bias."""

from __future__ import annotations

from dataclasses import dataclass

from .....codegen.info.ops import Ops
from .....language.kernel import Kernel
from .....tvm.types import Schedule, Tensor
from ..compute import epilogue, result
from ..schedule import in_parallel, prepare, store
from ..tiles import tile_rows
from .floats import Grouped, schedule_by_floats, sums_by_floats
from .levels import ByLevels, schedule_by_levels, sums_by_levels
from .plan import FewBitsPlan, plan
from .words import pack_levels, pack_scale, pack_zero


@dataclass(frozen=True)
class FewBits:
    """The dense layer, as `Dense` is one."""

    product: Grouped | ByLevels
    outputs: Tensor
    result: Tensor


def compute(
    x: Tensor,
    levels: Tensor,
    scale: Tensor,
    zero: Tensor,
    bias: Tensor | None = None,
    *,
    ops: Ops,
    plan: FewBitsPlan,
) -> FewBits:
    """Sums of groups or of pieces, then the bias."""
    out, rows = ops.dense.outputs[0], plan.product.rows
    made = sums_by_floats if plan.levels is None else sums_by_levels
    found = made(x, levels, scale, zero, plan)
    outputs = epilogue(found.sums, bias, out)
    return FewBits(found, outputs, result(rows, outputs, out[0][-1]))


def schedule(sch: Schedule, stages: FewBits, plan: FewBitsPlan) -> None:
    """Register tiles, spread over tasks of rows and panels of columns."""
    prepare(sch, stages, plan.product.lanes)
    loops = tile_rows(sch, stages.outputs, plan.product)
    if isinstance(stages.product, ByLevels):
        finish = schedule_by_levels(sch, stages.product, loops, plan)
    else:
        finish = schedule_by_floats(sch, stages.product, loops, plan)
    store(sch, stages.result, stages.outputs, loops, plan.product)
    in_parallel(sch, loops.tasks, plan.product)
    for last in finish:
        last()


FEW_BITS_DENSE = Kernel(
    plan, compute, schedule,
    pack={"levels": pack_levels, "scale": pack_scale, "zero": pack_zero},
)  # fmt: skip
