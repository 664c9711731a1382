"""Dense layers of few bits: sums by rows of floats or of levels, and what follows on tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....codegen.info.ops import Ops
from .....language.kernel import Kernel
from .....tvm import te
from .....tvm.types import Schedule, Tensor
from ....steps.loops import Finish
from ..compute import epilogue, result
from ..gated import Gated, gate_first, gated
from ..schedule import in_parallel, prepare, store
from ..tiles import tile_rows
from .floats import Grouped, schedule_by_floats, sums_by_floats
from .levels import ByLevels, rows_of_levels, schedule_by_levels, sums_by_levels
from .plan import FewBitsPlan, plan
from .rows import schedule_levels
from .words import pack_levels, pack_scale, pack_zero

Weight = tuple[Tensor, Tensor, Tensor]  # levels, scales and zero points
PACK = {"levels": pack_levels, "scale": pack_scale, "zero": pack_zero}


@dataclass(frozen=True)
class FewBits:
    """The dense layer, as `Dense` is one."""

    products: tuple[Grouped | ByLevels]
    outputs: Tensor
    result: Tensor


def _products(x: Tensor, weights: Sequence[Weight], plan: FewBitsPlan) -> list[Grouped | ByLevels]:
    """The sums of the same rows by each weight."""
    if plan.levels is None:
        return [sums_by_floats(x, *weight, plan) for weight in weights]
    rows = rows_of_levels(x, plan)
    return [sums_by_levels(rows, *weight, plan) for weight in weights]


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
    (found,) = _products(x, [(levels, scale, zero)], plan)
    outputs = epilogue(found.sums, bias, out)
    return FewBits((found,), outputs, result(rows, outputs, out[0][-1]))


def compute_gated(
    x: Tensor,
    levels: Tensor,
    scale: Tensor,
    zero: Tensor,
    up_levels: Tensor,
    up_scale: Tensor,
    up_zero: Tensor,
    *,
    ops: Ops,
    plan: FewBitsPlan,
) -> Gated:
    """Both sums, then the product of what the first one gates with the other. One row reads both
    weights from end to end, one after the other: by turns, tile by tile, each is a stream that the
    prefetcher learns anew (1x2048x8192 of 4 bits from memory: 5% slower than two kernels, Zen 4).
    """
    out, rows = ops.dense.outputs[0], plan.product.rows
    weights = [(levels, scale, zero), (up_levels, up_scale, up_zero)]
    gate, up = _products(x, weights, plan)
    if rows.height > 1:
        outputs = gated([gate.sums, up.sums], (None, None), ops, out)
        return Gated((gate, up), outputs, result(rows, outputs, out[0][-1]))
    first = gate_first(gate.sums, ops)
    outputs = te.compute(first.shape, lambda *i: first(*i) * up.sums(*i), name="outputs")
    return Gated((gate, up), outputs, result(rows, outputs, out[0][-1]), first)


def schedule(sch: Schedule, stages: FewBits | Gated, plan: FewBitsPlan) -> None:
    """Register tiles, spread over tasks of rows and panels of columns."""
    prepare(sch, stages, plan.product.lanes)
    loops = tile_rows(sch, stages.outputs, plan.product)
    places, finish = [loops] * len(stages.products), list[Finish]()
    if isinstance(stages, Gated) and stages.first is not None:
        places[0] = tile_rows(sch, stages.first, plan.product)
    for n, (made, at) in enumerate(zip(stages.products, places, strict=True)):
        if isinstance(made, ByLevels):
            rows = schedule_levels(sch, made.rows, plan.product.lanes) if n == 0 else []
            finish += [*rows, *schedule_by_levels(sch, made, at, plan)]
        else:
            finish += schedule_by_floats(sch, made, at, plan)
    store(sch, stages.result, stages.outputs, loops, plan.product)
    if places[0] is not loops:
        in_parallel(sch, places[0].tasks, plan.product)
    in_parallel(sch, loops.tasks, plan.product)
    for last in finish:
        last()


FEW_BITS_DENSE = Kernel(plan, compute, schedule, pack=PACK)
GATED_FEW_BITS = Kernel(
    plan, compute_gated, schedule,
    pack=PACK | {f"up_{name}": pack for name, pack in PACK.items()},
)  # fmt: skip
