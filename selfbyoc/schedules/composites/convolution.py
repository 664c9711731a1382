"""conv2d (+bias) (+relu, clip, silu, hard_swish): NCHW and NHWC, any groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import either, op
from ...tvm.types import Attr
from ..kernels.conv.kernel import CONV
from .sizes import check_rows

if TYPE_CHECKING:
    from ...language.nodes import Node


def biased(y: Node, bias: Node) -> Node:
    """An optional bias after a convolution."""
    return either(op.bias_add(y, bias), y)


def activated(y: Node) -> Node:
    """An optional activation."""
    return either(op.relu(y), op.clip(y), op.silu(y), op.hard_swish(y), y)


def floating(match: Match) -> None:
    """Every convolution computes in float32; integer ones are another composite's."""
    for conv in match.of("conv2d"):
        dtype = conv.inputs[0].dtype
        require(
            not dtype.startswith(("int", "uint")),
            f"a bare {dtype} convolution is not taken; it needs its requantize, clip and cast "
            "after it",
        )
        same = {v.dtype for v in (*conv.inputs, *conv.outputs)} == {"float32"}
        require(same, f"only float32 is scheduled, found {dtype} -> {conv.outputs[0].dtype}")


def direct_layout(match: Match) -> None:
    """The check of every composite on the direct computes: float32, NCHW and OIHW."""
    floating(match)
    for conv in match.of("conv2d"):
        found = tuple(conv.attrs[f"{of}_layout"] for of in ("data", "kernel", "out"))
        require(
            found == ("NCHW", "OIHW", "NCHW"),
            f"{conv.name}: only NCHW, OIHW and NCHW are scheduled, found {', '.join(found)}",
        )


def _pattern(x: Node, weight: Node, bias: Node) -> Node:
    return activated(biased(op.conv2d(x, weight), bias))


def _relu(**attrs: Attr) -> Program:
    return lambda x, weight, bias: op.relu(op.bias_add(op.conv2d(x, weight, **attrs), bias))


def _bare(**attrs: Attr) -> Program:
    return lambda x, weight: op.conv2d(x, weight, **attrs)


def _silu(**attrs: Attr) -> Program:
    return lambda x, weight, bias: op.silu(op.bias_add(op.conv2d(x, weight, **attrs), bias))


def _case(name: str, program: Program, x: Any, weight: Any, *, constant: bool = True) -> Case:
    """A case; its bias, if the program has one, is as long as the weight's first axis."""
    args = {"x": x, "weight": weight}
    if "bias" in inspect.signature(program).parameters:
        args["bias"] = weight[:1]
    weights = tuple(n for n in args if n != "x") if constant else ()
    return Case(program, name=name, constants=weights, **args)


conv2d = Composite(
    "conv2d",
    _pattern,
    check=direct_layout,
    kernel=CONV,
    epilogue=check_rows,
    prologue=("x",),
    why="the bias and the activation are applied while the tile is in registers",
    cases=(
        _case("3x3", _relu(padding=1), (1, 64, 56, 56), (64, 64, 3, 3)),
        _case("1x1", _relu(), (1, 192, 28, 28), (64, 192, 1, 1)),
        _case("1x1-7x7", _relu(), (1, 832, 7, 7), (384, 832, 1, 1)),
        _case("first-layer", _relu(strides=2, padding=3), (1, 3, 224, 224), (64, 3, 7, 7)),
        _case("runtime", _relu(padding=1), (2, 19, 13, 17), (21, 19, 3, 3), constant=False),
        _case("asymmetric", _relu(strides=2, padding=(0, 1, 1, 0)), (1, 5, 15, 18), (9, 5, 3, 3)),
        _case("dilated", _relu(dilation=2, padding=2), (1, 8, 21, 11), (16, 8, 3, 3)),
        _case(
            "1x1-stride-2",
            lambda x, weight: op.clip(op.conv2d(x, weight, strides=2)),
            (3, 24, 15, 14),
            (20, 24, 1, 1),
        ),
        _case("grouped", _silu(groups=4, padding=(1, 2)), (2, 24, 17, 10), (36, 6, 3, 5)),
        _case(
            "hard-swish",
            lambda x, weight: op.hard_swish(op.conv2d(x, weight, strides=2, padding=1)),
            (1, 3, 18, 15),
            (20, 3, 3, 3),
        ),
        _case("multiplier", _bare(groups=18, padding=1), (1, 18, 15, 15), (36, 1, 3, 3)),
        _case("small-images", _relu(padding=2), (3, 9, 7, 6), (48, 9, 5, 5)),
        _case("tiny", _relu(padding=1), (2, 20, 3, 2), (32, 20, 3, 3)),
        _case("tiny-stride-2", _silu(strides=2, padding=1), (1, 17, 6, 5), (48, 17, 3, 3)),
        _case("one-row", _bare(), (1, 7, 1, 40), (3, 7, 1, 4), constant=False),
        Case(
            lambda x, weight: op.conv2d(x, op.half_weight(weight)),
            name="bfloat16", generations=("relax",), constants=("weight",),
            x=(1, 45, 14, 15), weight=((40, 45, 1, 1), "bfloat16"),
        ),
        Case(
            lambda x, weight: op.relu(op.conv2d(x, op.half_weight(weight), padding=1, strides=2)),
            name="bfloat16-3x3", generations=("relax",), constants=("weight",),
            x=(2, 20, 9, 8), weight=((36, 20, 3, 3), "bfloat16"),
        ),
    ),
)  # fmt: skip


def _nhwc(last: Callable[[Node], Node] = op.relu, **attrs: Attr) -> Program:
    def program(x: Node, weight: Node, bias: Node) -> Node:
        y = op.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO", **attrs)
        return last(op.bias_add(y, bias, axis=3))

    return program


def _bare_nhwc(last: Callable[[Node], Node]) -> Program:
    def program(x: Node, weight: Node) -> Node:
        return last(op.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO", padding=1))

    return program


_SMALL_NHWC: dict[str, Any] = {"x": (1, 7, 6, 5), "weight": (3, 3, 5, 9)}


conv2d_nhwc = Composite(
    "conv2d_nhwc",
    lambda x, weight, bias: activated(biased(op.conv2d(x, weight, data_layout="NHWC"), bias)),
    check=floating,
    epilogue=True,
    why="the bias and the activation are applied while the tile is in registers",
    cases=(
        Case(
            _nhwc(padding=1),
            name="3x3",
            x=(1, 14, 15, 24),
            weight=(3, 3, 24, 40),
            bias=(40,),
            constants=("weight", "bias"),
        ),
        Case(_nhwc(lambda y: y), name="linear", **_SMALL_NHWC, bias=(9,)),
        Case(_bare_nhwc(op.clip), name="clip", **_SMALL_NHWC),
        Case(_bare_nhwc(op.silu), name="silu", **_SMALL_NHWC),
        Case(_bare_nhwc(op.hard_swish), name="hard-swish", **_SMALL_NHWC),
        Case(_nhwc(strides=2), name="tail", x=(2, 9, 12, 7), weight=(3, 2, 7, 19), bias=(19,)),
    ),
)
