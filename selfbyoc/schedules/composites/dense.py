"""Dense layers: dense (+bias) (+relu, gelu) (+residual)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...codegen.info.ops import Ops
from ...graph import HALVES
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.pattern import either, op
from ...machine import Machine
from ...tvm.types import Tensor
from ..kernels.rows.alone import plan_alone
from ..kernels.rows.compute import (
    Dense,
    activation,
    epilogue,
    factors,
    in_tiles,
    product,
    result,
)
from ..kernels.rows.forms import ProductPlan
from ..kernels.rows.pack import pack_factor
from ..kernels.rows.schedule import schedule_dense
from .sizes import check_sizes

if TYPE_CHECKING:
    from ...language.nodes import Node


def check_bias(match: Match) -> None:
    """A bias is along the units."""
    for call in match.of("bias_add"):
        axis = call.attrs["axis"] % call.outputs[0].ndim
        require(axis == call.outputs[0].ndim - 1, f"{call.name} is along axis {axis}, not the last")


def check_residual(match: Match) -> None:
    """A residual is as large as what it is added to."""
    check_sizes(match)
    residual, out = match.residual, match.root.outputs[0]
    require(
        residual is None or residual.shape == out.shape,
        f"residual must be as large as the result's {out.type}, found {residual!r}",
    )


def held(weight: Node) -> Node:
    """The pattern of a weight, perhaps of halves: these stay so in memory."""
    return either(of_halves(weight), weight)


def of_halves(weight: Node) -> Node:
    """A weight of halves."""
    return either(op.half_weight(weight), op.cast(weight, dtype="float32"))


def check_held(match: Match) -> None:
    """A weight that is cast is of halves."""
    for call in match.of("cast"):
        found, made = call.inputs[0].dtype, call.outputs[0].dtype
        require(
            found in HALVES and made == "float32",
            f"{call.name} makes {made} of {found}: a weight is of halves, computing of float32",
        )


def _check(match: Match) -> None:
    check_bias(match)
    check_held(match)
    check_residual(match)


def _pattern(x: Node, weight: Node, bias: Node, residual: Node) -> Node:
    y = op.dense(x, held(weight))
    y = either(op.bias_add(y, bias), y)
    y = either(op.relu(y), op.gelu(y), y)
    return either(op.add(y, residual), y)


def _plan(ops: Ops, machine: Machine) -> ProductPlan:
    return plan_alone(ops, "weight", machine)


def _compute(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    *,
    ops: Ops,
    plan: ProductPlan,
) -> Dense:
    out = ops.dense.outputs[0]
    found = product(in_tiles(factors(x, plan), plan.rows), weight, out[1], plan)
    outputs = epilogue(found.sums, bias, out, activation(ops))
    return Dense(found, outputs, result(plan.rows, outputs, out[0][-1], residual))


dense = Composite(
    "dense",
    _pattern,
    kernel=Kernel(_plan, _compute, schedule_dense, pack={"weight": pack_factor}),
    check=_check,
    epilogue=True,
    prologue=("x",),
    why="the bias and the activation are applied while the tile is in registers",
    cases=(
        Case(lambda x, weight: op.dense(x, weight), x=(3, 5), weight=(4, 5), constants=["weight"]),
        Case(
            lambda x, weight, bias: op.relu(op.bias_add(op.dense(x, weight), bias)),
            x=(7, 33), weight=(17, 33), bias=(17,), constants=["weight", "bias"],
        ),
        Case(
            lambda x, weight, bias: op.gelu(op.bias_add(op.dense(x, weight), bias, axis=-1)),
            x=(2, 19, 64), weight=(48, 64), bias=(48,), constants=["weight", "bias"],
        ),
        Case(
            lambda x, weight: op.relu(op.dense(x, weight)),
            x=(1, 1024), weight=(1000, 1024), constants=["weight"],
        ),
        Case(
            lambda x, weight: op.dense(x, weight),
            x=(128, 768), weight=(768, 768), constants=["weight"],
        ),
        Case(lambda x, weight: op.dense(x, weight), x=(50, 96), weight=(40, 96)),
        Case(
            lambda x, weight, bias, residual: op.add(
                residual, op.bias_add(op.dense(x, weight), bias, axis=-1)
            ),
            x=(2, 37, 128), weight=(45, 128), bias=(45,), residual=(2, 37, 45),
            constants=["weight", "bias"],
        ),
        Case(
            lambda x, weight, residual: op.add(op.gelu(op.dense(x, weight)), residual),
            x=(3, 5, 20), weight=(9, 20), residual=(3, 5, 9),
        ),
        Case(
            lambda x, weight: op.dense(x, of_halves(weight)),
            x=(6, 40), weight=((33, 40), "float16"), constants=["weight"],
        ),
        Case(
            lambda x, weight: op.dense(x, op.cast(weight, dtype="float32")),
            x=(21, 45), weight=((50, 45), "float16"), constants=["weight"],
        ),
    ),
)  # fmt: skip
