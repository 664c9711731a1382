"""layer_norm + dense as one kernel, and layer_norm and softmax alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...codegen.info.ops import Ops
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.kernel import Kernel
from ...language.match.match import Match
from ...language.pattern import either, op
from ...machine import Machine
from ...tvm import te
from ...tvm.types import Schedule, Shape, Tensor
from ..kernels.rows.compute import Dense, activation, epilogue, in_tiles, product, result
from ..kernels.rows.halves import become_floats, machine_of, products_of, rounded_words, steps_of
from ..kernels.rows.melt import melt_rows
from ..kernels.rows.normal import NormalPlan, normal_plan
from ..kernels.rows.pack import pack_factor
from ..kernels.rows.rowwise import Rowwise, RowwisePlan, Stages, rowwise_plan
from ..kernels.rows.rowwise import layer_norm as layer_norm_stages
from ..kernels.rows.rowwise import softmax as softmax_stages
from ..kernels.rows.schedule import prepare, schedule_normal
from .dense import check_bias, check_held, held, of_halves

if TYPE_CHECKING:
    from ...language.nodes import Node


def check_rows(match: Match) -> None:
    """Rows of float32, several, each along the last axis."""
    for kind in ("layer_norm", "rms_norm", "softmax"):
        for call in match.of(kind):
            x = call.inputs[0]
            require(x.dtype == "float32", f"only float32 is scheduled, found {x.dtype}")
            require(x.ndim > 1, f"{kind} of one row has no rows to share out: found {x.type}")
            last = call.attrs["axis"] == -1 or call.attrs["axis"] == x.ndim - 1
            require(last, f"{kind} is over axis {call.attrs['axis']}, not the last")


def check_normal(match: Match) -> None:
    """The same, and the bias of the dense that reads them."""
    check_rows(match)
    check_bias(match)
    check_held(match)


def dense_of(normal: Node, weight: Node, bias: Node) -> Node:
    """The pattern of a dense on normalised rows, with what follows it."""
    y = op.dense(normal, held(weight))
    y = either(op.bias_add(y, bias), y)
    return either(op.relu(y), op.gelu(y), y)


def _pattern(x: Node, gamma: Node, beta: Node, weight: Node, bias: Node) -> Node:
    return dense_of(op.layer_norm(x, gamma, beta), weight, bias)


def dense_plan(ops: Ops, machine: Machine) -> NormalPlan:
    (shape, dtype), count = ops.dense.outputs[0], ops.dense.inputs[0][0][-1]
    products = products_of(ops, "weight", machine)
    machine, depth = machine_of(machine, products), steps_of(count, products)
    halves = become_floats(ops, "weight", products)
    found = normal_plan(shape, depth, dtype, machine, count, halves)
    return replace(found, product=replace(found.product, products=products))


def _compute(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    ops: Ops,
    plan: NormalPlan,
) -> Dense:
    tiled, epsilon = tiles_of(x, plan), ops.layer_norm.attrs["epsilon"]
    read = in_tiles(x, plan.rows)
    normal = layer_norm_stages(read, gamma, beta, tiled, epsilon, plan.normal)
    return dense_stages(normal, tiled, weight, bias, ops, plan)


def tiles_of(x: Tensor, plan: NormalPlan) -> tuple[int, ...]:
    """The shape of x as rows in tiles."""
    return (*plan.rows.tiles, plan.rows.height, int(x.shape[-1]))


def dense_stages(
    normal: Stages,
    tiled: tuple[int, ...],
    weight: Tensor,
    bias: Tensor | None,
    ops: Ops,
    plan: NormalPlan,
) -> Dense:
    """The stages of a dense on rows that are normalised in tiles."""
    (element, before), out = normal, ops.dense.outputs[0]
    if plan.product.products:
        normalised = rounded_words(element, tiled, "normalised")
    else:
        normalised = te.compute(tiled, element, name="normalised")
    found = product(normalised, weight, out[1], plan.product)
    outputs = epilogue(found.sums, bias, out, activation(ops))
    stored = result(plan.rows, outputs, out[0][-1])
    return Dense(found, outputs, stored, Rowwise(before, normalised))


def pack_normal(weight: Tensor, plan: NormalPlan) -> Tensor:
    """As the product of the plan reads it."""
    return pack_factor(weight, plan.product)


WEIGHTS = ("gamma", "beta", "weight", "bias")


def _plain(x: Node, gamma: Node, beta: Node, weight: Node) -> Node:
    return op.dense(op.layer_norm(x, gamma, beta), weight)


def _biased(x: Node, gamma: Node, beta: Node, weight: Node, bias: Node) -> Node:
    return op.bias_add(_plain(x, gamma, beta, weight), bias, axis=-1)


def _gelu(x: Node, gamma: Node, beta: Node, weight: Node, bias: Node) -> Node:
    return op.gelu(_biased(x, gamma, beta, weight, bias))


def _relu(x: Node, gamma: Node, beta: Node, weight: Node) -> Node:
    return op.relu(_plain(x, gamma, beta, weight))


def _of_halves(x: Node, gamma: Node, beta: Node, weight: Node) -> Node:
    return _plain(x, gamma, beta, of_halves(weight))


def _of_cast_halves(x: Node, gamma: Node, beta: Node, weight: Node) -> Node:
    return _plain(x, gamma, beta, op.cast(weight, dtype="float32"))


def _shapes(*rows: int, count: int, units: int) -> dict[str, Any]:
    return {"x": (*rows, count), "gamma": (count,), "beta": (count,), "weight": (units, count)}


layer_norm_dense = Composite(
    "layer_norm_dense",
    _pattern,
    kernel=Kernel(dense_plan, _compute, schedule_normal, pack={"weight": pack_normal}),
    check=check_normal,
    epilogue=True,
    why="the normalised rows stay in the cache of the core that multiplies them",
    cases=(
        Case(_plain, **_shapes(7, count=33, units=17)),
        Case(_relu, **_shapes(3, 5, count=20, units=9)),
        Case(
            _of_halves,
            **_shapes(6, count=40, units=33) | {"weight": ((33, 40), "float16")},
            constants=("gamma", "beta", "weight"),
        ),
        Case(
            _of_cast_halves,
            **_shapes(5, count=45, units=50) | {"weight": ((50, 45), "float16")},
            constants=("gamma", "beta", "weight"),
        ),
        Case(_biased, **_shapes(2, 19, count=64, units=48), bias=(48,), constants=WEIGHTS),
        Case(_gelu, **_shapes(1, 45, count=96, units=130), bias=(130,), constants=WEIGHTS),
        Case(_biased, **_shapes(1, count=768, units=768), bias=(768,), constants=WEIGHTS),
        Case(_gelu, **_shapes(128, count=768, units=768), bias=(768,), constants=WEIGHTS),
    ),
)


def rows_plan(ops: Ops, machine: Machine) -> RowwisePlan:
    """The plan of rows by themselves."""
    (call,) = ops
    *lead, count = call.outputs[0][0]
    return rowwise_plan(lead, count, machine)


def rows_stages(normal: Stages, shape: Shape) -> Rowwise:
    """The stages of rows by themselves, stored as they are."""
    element, before = normal
    return Rowwise(before, te.compute(shape, element, name="result"))


def _layer_norm_compute(
    x: Tensor, gamma: Tensor, beta: Tensor, *, ops: Ops, plan: RowwisePlan
) -> Rowwise:
    shape = ops.layer_norm.outputs[0][0]
    epsilon = ops.layer_norm.attrs["epsilon"]
    return rows_stages(layer_norm_stages(x, gamma, beta, shape, epsilon, plan), shape)


def _softmax_compute(x: Tensor, *, ops: Ops, plan: RowwisePlan) -> Rowwise:
    shape = ops.softmax.outputs[0][0]
    guarded = ops.softmax.attrs.get("guarded", False)
    return rows_stages(softmax_stages(x, shape, plan, guarded), shape)


def rows_schedule(sch: Schedule, stages: Rowwise, plan: RowwisePlan) -> None:
    """The stages of each row one after the other, rows in parallel."""
    prepare(sch, stages, plan.lanes)
    for last in melt_rows(sch, stages.before, stages.result, plan):
        last()


layer_norm = Composite(
    "layer_norm",
    lambda x, gamma, beta: op.layer_norm(x, gamma, beta),
    kernel=Kernel(rows_plan, _layer_norm_compute, rows_schedule),
    check=check_rows,
    epilogue=True,
    why="a row is read from memory once",
    cases=(
        Case(x=(7, 33), gamma=(33,), beta=(33,)),
        Case(x=(2, 19, 64), gamma=(64,), beta=(64,)),
        Case(x=(3, 2, 9, 37), gamma=(37,), beta=(37,)),
        Case(x=(5, 2), gamma=(2,), beta=(2,)),
        Case(x=(6, 197), gamma=(197,), beta=(197,)),
        Case(x=(128, 768), gamma=(768,), beta=(768,)),
    ),
)

softmax = Composite(
    "softmax",
    lambda x: op.softmax(x),
    kernel=Kernel(rows_plan, _softmax_compute, rows_schedule),
    check=check_rows,
    epilogue=True,
    why="a row is read from memory once",
    cases=(
        Case(x=(7, 33)),
        Case(x=(2, 3, 19, 50)),
        Case(x=(3, 2, 9, 37)),
        Case(x=(5, 2)),
        Case(x=(6, 197)),
        Case(x=(1, 1000)),
        Case(x=(128, 768)),
    ),
)
