"""conv2d-relu-conv2d-relu as one kernel: the RFC's program, which plain relay.build refuses to
fuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...language.case import Case
from ...language.composite import Composite
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr
from ..kernels.conv.chain.schedule import CHAIN
from .convolution import biased, direct_layout
from .sizes import check_steps

if TYPE_CHECKING:
    from ...language.nodes import Node


def _check(match: Match) -> None:
    direct_layout(match)
    check_steps(match)


def _pattern(x: Node, w1: Node, b1: Node, w2: Node, b2: Node) -> Node:
    hidden = op.relu(biased(op.conv2d(x, w1), b1))
    return op.relu(biased(op.conv2d(hidden, w2), b2))


def _chain(first: dict[str, Attr], second: dict[str, Attr]) -> Program:
    return lambda x, w1, w2: op.relu(op.conv2d(op.relu(op.conv2d(x, w1, **first)), w2, **second))


def _biased_chain(first: dict[str, Attr], second: dict[str, Attr]) -> Program:
    def program(x: Node, w1: Node, b1: Node, w2: Node, b2: Node) -> Node:
        hidden = op.relu(op.bias_add(op.conv2d(x, w1, **first), b1))
        return op.relu(op.bias_add(op.conv2d(hidden, w2, **second), b2))

    return program


_ALL = ("w1", "b1", "w2", "b2")
_PAD = {"padding": 1}

conv2d_relu_conv2d_relu = Composite(
    "conv2d_relu_conv2d_relu",
    _pattern,
    check=_check,
    kernel=CHAIN,
    epilogue=True,
    why="the first convolution's rows are still in cache when the second one reads them",
    cases=(
        Case(
            _chain(_PAD, _PAD),
            name="rfc",
            x=(1, 3, 224, 224),
            w1=(32, 3, 3, 3),
            w2=(32, 32, 3, 3),
            constants=["w1", "w2"],
        ),
        Case(
            _biased_chain(_PAD, _PAD),
            name="64x56x56",
            x=(1, 64, 56, 56),
            w1=(64, 64, 3, 3),
            b1=(64,),
            w2=(64, 64, 3, 3),
            b2=(64,),
            constants=_ALL,
        ),
        Case(
            _biased_chain({"strides": 2, "padding": (1, 0, 0, 1)}, {"padding": (0, 2)}),
            name="strided-first",
            x=(2, 5, 31, 19),
            w1=(9, 5, 3, 3),
            b1=(9,),
            w2=(7, 9, 1, 5),
            b2=(7,),
        ),
        Case(
            _chain(
                {"padding": 1, "groups": 2}, {"strides": (2, 1), "dilation": (1, 2), "padding": 2}
            ),
            name="strided-second",
            x=(1, 6, 17, 13),
            w1=(10, 3, 3, 3),
            w2=(11, 10, 3, 3),
            constants=["w1", "w2"],
        ),
        Case(
            _chain({}, {}),
            name="pointwise",
            x=(3, 17, 7, 7),
            w1=(23, 17, 1, 1),
            w2=(5, 23, 1, 1),
            constants=["w1", "w2"],
        ),
    ),
)
