"""Dense layers: dense (+bias) (+relu, gelu) (+residual)."""

from __future__ import annotations

from typing import Any

from ..._tvm import dtype_of, tir
from ...compute import mathfn
from ...language.case import Case
from ...language.composite import Composite, require
from ...language.pattern import either, op
from ...machine import machine
from ..kernels.rows.schedule import dense_tiles
from ..kernels.rows.tiles import Rows, epilogue, pack_weight, product, result
from ..steps.blocks import facts

ACTIVATIONS = {
    "relu": lambda x: tir.Max(tir.const(0, dtype_of(x)), x),
    "gelu": mathfn.gelu,
}


def activation(ops: Any) -> Any:
    """The function of the op that is an activation, if there is one."""
    return next((ACTIVATIONS[v.kind] for v in ops if v.kind in ACTIVATIONS), lambda x: x)


def rows_of(ops: Any) -> Rows:
    """The rows that go through the first dense."""
    return Rows(tuple(ops.dense.outputs[0][0][:-1]))


def check_bias(match: Any) -> None:
    """A bias is along the units."""
    for call in match.of("bias_add"):
        axis = call.attrs["axis"] % call.outputs[0].ndim
        require(axis == call.outputs[0].ndim - 1, f"{call.name} is along axis {axis}, not the last")


def check_residual(match: Any) -> None:
    """A residual is as large as what it is added to."""
    residual, out = match.residual, match.root.outputs[0]
    require(
        residual is None or residual.shape == out.shape,
        f"residual must be as large as the result's {out.type}, found {residual!r}",
    )


def _check(match: Any) -> None:
    check_bias(match)
    check_residual(match)


def _pattern(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
    y = op.dense(x, weight)
    y = either(op.bias_add(y, bias), y)
    y = either(op.relu(y), op.gelu(y), y)
    return either(op.add(y, residual), y)


def _compute(x: Any, weight: Any, bias: Any = None, residual: Any = None, *, ops: Any) -> Any:
    rows, (shape, dtype) = rows_of(ops), ops.dense.outputs[0]
    products = product(
        rows, lambda *i: x(*rows.of(i[:-1]), i[-1]), int(x.shape[-1]), weight, dtype, "products"
    )
    outputs = epilogue(products, bias, ops.dense.outputs[0], activation(ops), "outputs")
    return result(rows, outputs, shape[-1], "result", residual)


def _schedule(sch: Any, ops: Any, target: Any) -> None:
    # Register tiles, spread over tasks of rows and panels of columns.
    stages = {block.name: block for block in facts(sch)}
    _, finish = dense_tiles(sch, stages, rows_of(ops), machine(target))
    for last in finish:
        last()


dense = Composite(
    "dense",
    _pattern,
    {"llvm": _schedule, "c": _schedule},
    check=_check,
    compute=_compute,
    pack={"weight": pack_weight},
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
    ),
)  # fmt: skip
