"""conv2d + batch_norm + relu: the norm's tuple taken apart, the norm folded into one scale and
shift a channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite
from ...language.nodes import Program
from ...language.pattern import either, op
from ...tvm.types import Attr
from ..kernels.conv.kernel import CONV
from .convolution import biased, direct_layout
from .sizes import check_rows

if TYPE_CHECKING:
    from ...language.nodes import Node


def _pattern(
    x: Node, weight: Node, bias: Node, gamma: Node, beta: Node, mean: Node, var: Node
) -> Node:
    y = op.batch_norm(biased(op.conv2d(x, weight), bias), gamma, beta, mean, var)[0]
    return either(op.relu(y), y)


def _norm(relu: bool, epsilon: float = 1e-5, **attrs: Attr) -> Program:
    def program(x: Node, weight: Node, gamma: Node, beta: Node, mean: Node, var: Node) -> Node:
        y = op.batch_norm(op.conv2d(x, weight, **attrs), gamma, beta, mean, var, epsilon=epsilon)[0]
        return op.relu(y) if relu else y

    return program


def _sizes(channels: int) -> dict[str, Any]:
    return {name: (channels,) for name in ("gamma", "beta", "mean", "var")}


_ALL = ("weight", "gamma", "beta", "mean", "var")

conv2d_batch_norm_relu = Composite(
    "conv2d_batch_norm_relu",
    _pattern,
    check=direct_layout,
    kernel=CONV,
    epilogue=check_rows,
    prologue=("x",),
    why="the norm is one multiplication and one addition on the tile in registers",
    cases=(
        Case(
            _norm(True, padding=1),
            name="resnet",
            x=(1, 64, 28, 28),
            weight=(64, 64, 3, 3),
            **_sizes(64),
            constants=_ALL,
        ),
        Case(
            _norm(True, 1e-3, strides=2, padding=(1, 0, 0, 1)),
            name="strided",
            x=(2, 7, 17, 13),
            weight=(9, 7, 3, 3),
            **_sizes(9),
        ),
        Case(
            _norm(False),
            name="no-relu",
            x=(1, 11, 7, 7),
            weight=(19, 11, 1, 1),
            **_sizes(19),
            constants=_ALL,
        ),
        Case(
            lambda x, weight, bias, gamma, beta, mean, var: op.relu(
                op.batch_norm(
                    op.bias_add(op.conv2d(x, weight, groups=6, padding=1), bias),
                    gamma,
                    beta,
                    mean,
                    var,
                )[0]
            ),
            name="depthwise-biased",
            x=(1, 6, 9, 10),
            weight=(6, 1, 3, 3),
            bias=(6,),
            **_sizes(6),
        ),
    ),
)
