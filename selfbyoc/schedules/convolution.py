"""conv2d (+bias) (+residual) (+relu, clip, silu): NCHW and NHWC, any groups."""

from __future__ import annotations

from typing import Any

from . import direct, direct_schedule
from ..composite import Case, Composite, require
from ..partition.pattern import either, op


def biased(y: Any, bias: Any) -> Any:
    """An optional bias behind a convolution."""
    return either(op.bias_add(y, bias), y)


def activated(y: Any) -> Any:
    """An optional activation."""
    return either(op.relu(y), op.clip(y), op.silu(y), y)


def floating(match: Any) -> None:
    """Every convolution computes in float32; integer ones are another composite's."""
    for conv in match.of("conv2d"):
        dtype = conv.inputs[0].dtype
        require(
            not dtype.startswith(("int", "uint")),
            f"an {dtype} convolution needs its requantize, clip and cast behind it; bare it is not taken",
        )
        same = {v.dtype for v in (*conv.inputs, *conv.outputs)} == {"float32"}
        require(same, f"only float32 is scheduled, found {dtype} -> {conv.outputs[0].dtype}")


def direct_layout(match: Any) -> None:
    """The check of every composite on the direct computes: float32, NCHW and OIHW."""
    floating(match)
    for conv in match.of("conv2d"):
        found = tuple(conv.attrs[f"{of}_layout"] for of in ("data", "kernel", "out"))
        require(
            found == ("NCHW", "OIHW", "NCHW"),
            f"{conv.name}: layouts NCHW, OIHW -> NCHW are scheduled, found {found[0]}, {found[1]} -> {found[2]}",
        )


def _pattern(x: Any, weight: Any, bias: Any) -> Any:
    return activated(biased(op.conv2d(x, weight), bias))


def _conv(x: Any, weight: Any) -> Any:
    return op.conv2d(x, weight)


def _relu(**attrs: Any) -> Any:
    return lambda x, weight, bias: op.relu(op.bias_add(op.conv2d(x, weight, **attrs), bias))


_WEIGHTS = ("weight", "bias")

conv2d = Composite(
    "conv2d",
    _pattern,
    direct_schedule.CPU,
    check=direct_layout,
    compute={"conv2d": direct.conv2d},
    pack={"weight": direct.pack_weight},
    why="the bias and the activation are applied while the tile is in registers",
    cases=(
        Case(_relu(padding=1), name="3x3", x=(1, 64, 56, 56), weight=(64, 64, 3, 3), bias=(64,), constants=_WEIGHTS),
        Case(_relu(), name="1x1", x=(1, 192, 28, 28), weight=(64, 192, 1, 1), bias=(64,), constants=_WEIGHTS),
        Case(_relu(), name="1x1-7x7", x=(1, 832, 7, 7), weight=(384, 832, 1, 1), bias=(384,), constants=_WEIGHTS),
        Case(
            _relu(strides=2, padding=3), name="first-layer",
            x=(1, 3, 224, 224), weight=(64, 3, 7, 7), bias=(64,), constants=_WEIGHTS,
        ),
        Case(_relu(padding=1), name="runtime-weight", x=(2, 19, 13, 17), weight=(21, 19, 3, 3), bias=(21,)),
        Case(_relu(strides=2, padding=(0, 1, 1, 0)), name="asymmetric", x=(1, 5, 15, 18), weight=(9, 5, 3, 3), bias=(9,)),
        Case(
            _relu(dilation=2, padding=2), name="dilated", x=(1, 8, 21, 11), weight=(16, 8, 3, 3), bias=(16,),
            constants=_WEIGHTS,
        ),
        Case(
            lambda x, weight: op.clip(op.conv2d(x, weight, strides=2), a_min=0, a_max=6), name="1x1-stride-2",
            x=(3, 24, 15, 14), weight=(20, 24, 1, 1), constants=["weight"],
        ),
        Case(
            lambda x, weight, bias: op.silu(op.bias_add(op.conv2d(x, weight, groups=4, padding=(1, 2)), bias)),
            name="grouped", x=(2, 24, 17, 10), weight=(36, 6, 3, 5), bias=(36,), constants=_WEIGHTS,
        ),
        Case(
            lambda x, weight: op.conv2d(x, weight, groups=18, padding=1), name="depthwise-multiplier",
            x=(1, 18, 15, 15), weight=(36, 1, 3, 3), constants=["weight"],
        ),
        Case(_conv, name="one-row", x=(1, 7, 1, 40), weight=(3, 7, 1, 4)),
    ),
)  # fmt: skip


def _nhwc(**attrs: Any) -> Any:
    def program(x: Any, weight: Any, bias: Any) -> Any:
        y = op.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO", **attrs)
        return op.relu(op.bias_add(y, bias, axis=3))

    return program


conv2d_nhwc = Composite(
    "conv2d_nhwc",
    lambda x, weight, bias: activated(biased(op.conv2d(x, weight, data_layout="NHWC"), bias)),
    check=floating,
    why="the bias and the activation are applied while the tile is in registers",
    cases=(
        Case(_nhwc(padding=1), name="3x3", x=(1, 14, 15, 24), weight=(3, 3, 24, 40), bias=(40,), constants=_WEIGHTS),
        Case(_nhwc(strides=2), name="tail", x=(2, 9, 12, 7), weight=(3, 2, 7, 19), bias=(19,)),
    ),
)  # fmt: skip
