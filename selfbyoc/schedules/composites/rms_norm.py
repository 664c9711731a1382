"""rms_norm + dense as one kernel, and rms_norm alone: as layer_norm's, without mean and beta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...codegen.info.ops import Ops
from ...language.case import Case
from ...language.composite import Composite
from ...language.kernel import Kernel
from ...language.pattern import op
from ...tvm.types import Tensor
from ..kernels.rows.compute import Dense, in_tiles
from ..kernels.rows.normal import NormalPlan
from ..kernels.rows.rowwise import Rowwise, RowwisePlan
from ..kernels.rows.rowwise import rms_norm as rms_norm_stages
from ..kernels.rows.schedule import schedule_normal
from .dense import of_halves
from .layer_norm import (
    check_normal,
    check_rows,
    dense_of,
    dense_plan,
    dense_stages,
    pack_normal,
    rows_plan,
    rows_schedule,
    rows_stages,
    tiles_of,
)

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(x: Node, gamma: Node, weight: Node, bias: Node) -> Node:
    return dense_of(op.rms_norm(x, gamma), weight, bias)


def _dense_compute(
    x: Tensor,
    gamma: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    ops: Ops,
    plan: NormalPlan,
) -> Dense:
    tiled, epsilon = tiles_of(x, plan), ops.rms_norm.attrs["epsilon"]
    normal = rms_norm_stages(in_tiles(x, plan.rows), gamma, tiled, epsilon, plan.normal)
    return dense_stages(normal, tiled, weight, bias, ops, plan)


WEIGHTS = ("gamma", "weight", "bias")


def _plain(x: Node, gamma: Node, weight: Node) -> Node:
    return op.dense(op.rms_norm(x, gamma), weight)


def _biased(x: Node, gamma: Node, weight: Node, bias: Node) -> Node:
    return op.bias_add(_plain(x, gamma, weight), bias, axis=-1)


def _gelu(x: Node, gamma: Node, weight: Node, bias: Node) -> Node:
    return op.gelu(_biased(x, gamma, weight, bias))


def _relu(x: Node, gamma: Node, weight: Node) -> Node:
    return op.relu(_plain(x, gamma, weight))


def _of_halves(x: Node, gamma: Node, weight: Node) -> Node:
    return _plain(x, gamma, of_halves(weight))


def _of_cast_halves(x: Node, gamma: Node, weight: Node) -> Node:
    return _plain(x, gamma, op.cast(weight, dtype="float32"))


def _shapes(*rows: int, count: int, units: int) -> dict[str, Any]:
    return {"x": (*rows, count), "gamma": (count,), "weight": (units, count)}


rms_norm_dense = Composite(
    "rms_norm_dense",
    _pattern,
    kernel=Kernel(dense_plan, _dense_compute, schedule_normal, pack={"weight": pack_normal}),
    check=check_normal,
    epilogue=True,
    why="the normalised rows stay in the cache of the core that multiplies them",
    cases=(
        Case(_plain, **_shapes(7, count=33, units=17)),
        Case(_relu, **_shapes(3, 5, count=20, units=9)),
        Case(
            _of_halves,
            **_shapes(6, count=40, units=33) | {"weight": ((33, 40), "float16")},
            constants=("gamma", "weight"),
        ),
        Case(
            _of_cast_halves,
            **_shapes(5, count=45, units=50) | {"weight": ((50, 45), "float16")},
            constants=("gamma", "weight"),
        ),
        Case(_biased, **_shapes(2, 19, count=64, units=48), bias=(48,), constants=WEIGHTS),
        Case(_gelu, **_shapes(1, 45, count=96, units=130), bias=(130,), constants=WEIGHTS),
        Case(_plain, **_shapes(1, count=768, units=768), constants=("gamma", "weight")),
        Case(_plain, **_shapes(128, count=768, units=768), constants=("gamma", "weight")),
    ),
)


def _compute(x: Tensor, gamma: Tensor, *, ops: Ops, plan: RowwisePlan) -> Rowwise:
    (shape, _), epsilon = ops.rms_norm.outputs[0], ops.rms_norm.attrs["epsilon"]
    return rows_stages(rms_norm_stages(x, gamma, shape, epsilon, plan), shape)


rms_norm = Composite(
    "rms_norm",
    lambda x, gamma: op.rms_norm(x, gamma),
    kernel=Kernel(rows_plan, _compute, rows_schedule),
    check=check_rows,
    epilogue=True,
    why="a row is read from memory once",
    cases=(
        Case(x=(7, 33), gamma=(33,)),
        Case(x=(2, 19, 64), gamma=(64,)),
        Case(x=(3, 2, 9, 37), gamma=(37,)),
        Case(x=(5, 2), gamma=(2,)),
        Case(x=(6, 1), gamma=(1,)),
        Case(x=(6, 197), gamma=(197,)),
        Case(x=(1, 768), gamma=(768,)),
        Case(x=(128, 768), gamma=(768,)),
    ),
)
