"""conv2d (+bias) (+batch_norm) + residual (+relu): the end of a residual block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.pattern import either, op
from ..kernels.conv.kernel import CONV
from .convolution import biased, direct_layout
from .sizes import check_rows

if TYPE_CHECKING:
    from ...language.nodes import Node


def _residual(
    x: Node,
    weight: Node,
    bias: Node,
    gamma: Node,
    beta: Node,
    mean: Node,
    var: Node,
    residual: Node,
) -> Node:
    y = biased(op.conv2d(x, weight), bias)
    y = op.add(either(op.batch_norm(y, gamma, beta, mean, var)[0], y), residual)
    return either(op.relu(y), y)


def _same_shape(match: Match) -> None:
    direct_layout(match)
    (out,), residual = match.op("conv2d").outputs, match.residual
    require(
        residual.shape == out.shape,
        f"residual must be as large as the convolution's {out.type}, found {residual.type}",
    )


def _normed(
    x: Node, weight: Node, gamma: Node, beta: Node, mean: Node, var: Node, residual: Node
) -> Node:
    y = op.batch_norm(op.conv2d(x, weight), gamma, beta, mean, var)[0]
    return op.relu(op.add(y, residual))


conv2d_add = Composite(
    "conv2d_add",
    _residual,
    check=_same_shape,
    kernel=CONV,
    epilogue=check_rows,
    prologue=("x",),
    why="a residual block's sum is taken while the tile is in registers",
    cases=(
        Case(
            lambda x, weight, bias, residual: op.relu(
                op.add(op.bias_add(op.conv2d(x, weight, padding=1), bias), residual)
            ),
            name="resnet",
            x=(1, 128, 28, 28),
            weight=(128, 128, 3, 3),
            bias=(128,),
            residual=(1, 128, 28, 28),
            constants=["weight", "bias"],
        ),
        Case(
            lambda x, weight, residual: op.add(residual, op.conv2d(x, weight)),
            name="tail",
            x=(2, 7, 9, 11),
            weight=(5, 7, 1, 1),
            residual=(2, 5, 9, 11),
        ),
        Case(
            _normed,
            name="batch-norm",
            x=(1, 18, 14, 13),
            weight=(21, 18, 1, 1),
            gamma=(21,),
            beta=(21,),
            mean=(21,),
            var=(21,),
            residual=(1, 21, 14, 13),
            constants=("weight", "gamma", "beta", "mean", "var"),
        ),
    ),
)
