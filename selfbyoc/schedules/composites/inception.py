"""Parallel branches into one concatenate: GoogLeNet's block, and any number of convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import many, op
from ...tvm.types import Attr
from ..kernels.conv.kernel import CONV, INCEPTION
from .convolution import activated, biased, direct_layout

if TYPE_CHECKING:
    from ...language.nodes import Node


def _conv(x: Node, weight: Node, bias: Node, **attrs: Attr) -> Node:
    return op.relu(op.bias_add(op.conv2d(x, weight, **attrs), bias))


def _googlenet(pad: bool) -> Program:
    """GoogLeNet's four branches; as a program with the paddings that keep the size."""
    three, five = ({"padding": 1}, {"padding": 2}) if pad else ({}, {})
    pool: dict[str, Any] = {"pool_size": 3, "padding": 1} if pad else {}

    def block(
        x: Node, w1: Node, b1: Node, w3_reduce: Node, b3_reduce: Node, w3: Node, b3: Node,
        w5_reduce: Node, b5_reduce: Node, w5: Node, b5: Node, w_pool: Node, b_pool: Node,
    ) -> Node:  # fmt: skip
        branches = [
            _conv(x, w1, b1),
            _conv(_conv(x, w3_reduce, b3_reduce), w3, b3, **three),
            _conv(_conv(x, w5_reduce, b5_reduce), w5, b5, **five),
            _conv(op.max_pool2d(x, **pool), w_pool, b_pool),
        ]
        return op.concatenate(branches)

    return block


def _channels(match: Match) -> None:
    direct_layout(match)
    axis = match.op("concatenate").attrs["axis"] % 4
    require(
        axis == 1,
        f"the branches must be concatenated along their channels, axis 1; found axis {axis}",
    )


def _sizes(
    channels: int, one: int, three: tuple[int, int], five: tuple[int, int], pool: int
) -> dict[str, Any]:
    return {
        "w1": (one, channels, 1, 1), "b1": (one,),
        "w3_reduce": (three[0], channels, 1, 1), "b3_reduce": (three[0],),
        "w3": (three[1], three[0], 3, 3), "b3": (three[1],),
        "w5_reduce": (five[0], channels, 1, 1), "b5_reduce": (five[0],),
        "w5": (five[1], five[0], 5, 5), "b5": (five[1],),
        "w_pool": (pool, channels, 1, 1), "b_pool": (pool,),
    }  # fmt: skip


_ALL = tuple(_sizes(1, 1, (1, 1), (1, 1), 1))

inception = Composite(
    "inception",
    _googlenet(pad=False),
    check=_channels,
    kernel=INCEPTION,
    why="every branch is written into its part of the result, bias and activation on the way",
    cases=(
        Case(
            _googlenet(pad=True),
            name="3a",
            x=(1, 192, 28, 28),
            **_sizes(192, 64, (96, 128), (16, 32), 32),
            constants=_ALL,
        ),
        Case(
            _googlenet(pad=True),
            name="5b",
            x=(1, 832, 7, 7),
            **_sizes(832, 384, (192, 384), (48, 128), 128),
            constants=_ALL,
        ),
        Case(
            _googlenet(pad=True), name="tail", x=(2, 13, 9, 11), **_sizes(13, 5, (7, 9), (3, 17), 1)
        ),
    ),
)


def _parallel(x: Node) -> Node:
    return op.concatenate(
        many(lambda arg: activated(biased(op.conv2d(x, arg("weight")), arg("bias"))))
    )


parallel_conv2d = Composite(
    "parallel_conv2d",
    _parallel,
    check=_channels,
    kernel=CONV,
    why="the branches share their input and write one result",
    cases=(
        Case(
            lambda x, w0, b0, w1, b1: op.concatenate(
                [_conv(x, w0, b0), _conv(x, w1, b1, padding=1)]
            ),
            name="fire",
            x=(1, 16, 55, 55),
            w0=(64, 16, 1, 1),
            b0=(64,),
            w1=(64, 16, 3, 3),
            b1=(64,),
            constants=["w0", "b0", "w1", "b1"],
        ),
        Case(
            lambda x, w0, w1, w2, b2: op.concatenate(
                [
                    op.conv2d(x, w0, strides=2),
                    op.relu(op.conv2d(x, w1, strides=2, padding=1)),
                    op.clip(op.bias_add(op.conv2d(x, w2, strides=2, padding=(2, 1, 1, 2)), b2)),
                ]
            ),
            name="strided",
            x=(2, 5, 15, 13),
            w0=(3, 5, 1, 1),
            w1=(9, 5, 3, 3),
            w2=(17, 5, 4, 4),
            b2=(17,),
        ),
    ),
)
