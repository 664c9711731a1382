"""layer_norm + dense as one kernel, and layer_norm and softmax alone."""

from __future__ import annotations

from typing import Any

from ..._tvm import te
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.pattern import either, op
from ...machine import machine
from ..kernels.rows.schedule import dense_tiles, melt_rows
from ..kernels.rows.stages import LAYER_NORM_STAGES, SOFTMAX_STAGES
from ..kernels.rows.stages import layer_norm as layer_norm_stages
from ..kernels.rows.stages import softmax as softmax_stages
from ..kernels.rows.tiles import epilogue, pack_weight, product, result
from ..steps.blocks import facts
from .dense import activation, check_bias, rows_of


def _check_rows(match: Any) -> None:
    for kind in ("layer_norm", "softmax"):
        for call in match.of(kind):
            x = call.inputs[0]
            require(x.dtype == "float32", f"only float32 is scheduled, found {x.dtype}")
            last = call.attrs["axis"] == -1 or call.attrs["axis"] == x.ndim - 1
            require(last, f"{kind} is over axis {call.attrs['axis']}, not the last")


def check_affine(match: Any) -> None:
    """gamma and beta are used; an importer may say that they are not."""
    for call in match.of("layer_norm"):
        used = call.attrs["center"] and call.attrs["scale"]
        require(used, f"{call.name} does not use its gamma or beta")


def _check(match: Any) -> None:
    _check_rows(match)
    check_affine(match)
    check_bias(match)


def _pattern(x: Any, gamma: Any, beta: Any, weight: Any, bias: Any) -> Any:
    y = op.dense(op.layer_norm(x, gamma, beta), weight)
    y = either(op.bias_add(y, bias), y)
    return either(op.relu(y), op.gelu(y), y)


def _compute(x: Any, gamma: Any, beta: Any, weight: Any, bias: Any = None, *, ops: Any) -> Any:
    rows, (shape, dtype) = rows_of(ops), ops.dense.outputs[0]
    count = int(x.shape[-1])
    tiled = (*rows.tiles, rows.height)

    def read(*i: Any) -> Any:
        return x(*rows.of(i[:-1]), i[-1])

    normal = layer_norm_stages(read, gamma, beta, tiled, count, ops.layer_norm.attrs["epsilon"])
    normalised = te.compute((*tiled, count), normal, name="normalised")
    products = product(rows, normalised, count, weight, dtype, "products")
    outputs = epilogue(products, bias, ops.dense.outputs[0], activation(ops), "outputs")
    return result(rows, outputs, shape[-1], "result")


def _schedule(sch: Any, ops: Any, target: Any) -> None:
    cpu, rows = machine(target), rows_of(ops)
    stages = {block.name: block for block in facts(sch)}
    # 1. The dense in register tiles. Where every core has rows of its own, as the weight stays in
    #    L2, the normalised rows of a task are computed in front of its tiles and stay there too.
    task, finish = dense_tiles(sch, stages, rows, cpu, ("normalised", *LAYER_NORM_STAGES), True)
    # 2. Each row at once, its stages behind one another.
    finish += melt_rows(sch, stages, "normalised", LAYER_NORM_STAGES, task, cpu)
    for last in finish:
        last()


WEIGHTS = ("gamma", "beta", "weight", "bias")


def _plain(x: Any, gamma: Any, beta: Any, weight: Any) -> Any:
    return op.dense(op.layer_norm(x, gamma, beta), weight)


def _biased(x: Any, gamma: Any, beta: Any, weight: Any, bias: Any) -> Any:
    return op.bias_add(_plain(x, gamma, beta, weight), bias, axis=-1)


def _gelu(x: Any, gamma: Any, beta: Any, weight: Any, bias: Any) -> Any:
    return op.gelu(_biased(x, gamma, beta, weight, bias))


def _relu(x: Any, gamma: Any, beta: Any, weight: Any) -> Any:
    return op.relu(_plain(x, gamma, beta, weight))


def _shapes(*rows: int, count: int, units: int) -> dict[str, Any]:
    return {"x": (*rows, count), "gamma": (count,), "beta": (count,), "weight": (units, count)}


layer_norm_dense = Composite(
    "layer_norm_dense",
    _pattern,
    {"llvm": _schedule, "c": _schedule},
    check=_check,
    compute=_compute,
    pack={"weight": pack_weight},
    why="the normalised rows stay in the cache of the core that multiplies them",
    cases=(
        Case(_plain, **_shapes(7, count=33, units=17)),
        Case(_relu, **_shapes(3, 5, count=20, units=9)),
        Case(_biased, **_shapes(2, 19, count=64, units=48), bias=(48,), constants=WEIGHTS),
        Case(_gelu, **_shapes(1, 45, count=96, units=130), bias=(130,), constants=WEIGHTS),
        Case(_biased, **_shapes(1, count=768, units=768), bias=(768,), constants=WEIGHTS),
        Case(_gelu, **_shapes(128, count=768, units=768), bias=(768,), constants=WEIGHTS),
    ),
)


def _layer_norm_compute(x: Any, gamma: Any, beta: Any, *, ops: Any) -> Any:
    *lead, count = (int(extent) for extent in x.shape)
    epsilon = ops.layer_norm.attrs["epsilon"]
    normal = layer_norm_stages(x, gamma, beta, tuple(lead), count, epsilon)
    return te.compute(x.shape, normal, name="result")


def _softmax_compute(x: Any) -> Any:
    *lead, count = (int(extent) for extent in x.shape)
    return te.compute(x.shape, softmax_stages(x, tuple(lead), count), name="result")


def _rows_schedule(before: tuple[str, ...]) -> Any:
    def schedule(sch: Any, ops: Any, target: Any) -> None:
        stages = {block.name: block for block in facts(sch)}
        for last in melt_rows(sch, stages, "result", before, None, machine(target)):
            last()

    return {"llvm": schedule, "c": schedule}


layer_norm = Composite(
    "layer_norm",
    lambda x, gamma, beta: op.layer_norm(x, gamma, beta),
    _rows_schedule(LAYER_NORM_STAGES),
    check=_check,
    compute=_layer_norm_compute,
    why="a row is read from memory once",
    cases=(
        Case(x=(7, 33), gamma=(33,), beta=(33,)),
        Case(x=(2, 19, 64), gamma=(64,), beta=(64,)),
        Case(x=(5, 2), gamma=(2,), beta=(2,)),
        Case(x=(128, 768), gamma=(768,), beta=(768,)),
    ),
)

softmax = Composite(
    "softmax",
    lambda x: op.softmax(x),
    _rows_schedule(SOFTMAX_STAGES),
    check=_check_rows,
    compute=_softmax_compute,
    why="a row is read from memory once",
    cases=(
        Case(x=(7, 33)),
        Case(x=(2, 3, 19, 50)),
        Case(x=(5, 2)),
        Case(x=(1, 1000)),
        Case(x=(128, 768)),
    ),
)
