"""conv2d (+bias) (+residual) (+relu, clip, silu): NCHW and NHWC, any groups."""

from __future__ import annotations

from typing import Any

from ..composite import Case, Composite, require
from ..partition.pattern import either, op


def biased(y: Any, bias: Any) -> Any:
    """An optional bias behind a convolution."""
    return either(op.bias_add(y, bias), y)


def activated(y: Any) -> Any:
    """An optional activation."""
    return either(op.relu(y), op.clip(y), op.silu(y), y)


def floating(match: Any) -> None:
    """The check of every composite here: float32 data in a layout that names each axis once."""
    for conv in match.of("conv2d"):
        dtype = conv.inputs[0].dtype
        require(
            not dtype.startswith(("int", "uint")),
            f"an {dtype} convolution needs its requantize, clip and cast behind it; bare it is not taken",
        )
        require(dtype == "float32", f"only float32 is scheduled, found {dtype}")
        layout = conv.attrs["data_layout"]
        require(
            layout in ("NCHW", "NHWC"), f"data layout {layout} is not scheduled, only NCHW and NHWC"
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
    check=floating,
    why="the bias and the activation are applied while the tile is in registers",
    cases=(
        Case(_relu(padding=1), name="3x3", x=(1, 64, 56, 56), weight=(64, 64, 3, 3), bias=(64,), constants=_WEIGHTS),
        Case(_relu(), name="1x1", x=(1, 192, 28, 28), weight=(64, 192, 1, 1), bias=(64,), constants=_WEIGHTS),
        Case(_relu(), name="1x1-7x7", x=(1, 480, 7, 7), weight=(112, 480, 1, 1), bias=(112,), constants=_WEIGHTS),
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
        Case(
            lambda x, weight, bias: op.relu(op.bias_add(op.conv2d(
                x, weight, padding=1, data_layout="NHWC", kernel_layout="HWIO"), bias, axis=3)),
            name="NHWC", x=(1, 14, 15, 24), weight=(3, 3, 24, 40), bias=(40,), constants=_WEIGHTS,
        ),
    ),
)  # fmt: skip


def _residual(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
    y = op.add(biased(op.conv2d(x, weight), bias), residual)
    return either(op.relu(y), y)


def _same_shape(match: Any) -> None:
    floating(match)
    (out,), residual = match.op("conv2d").outputs, match.residual
    require(
        residual.shape == out.shape,
        f"residual must be as large as the convolution's {out.type}, found {residual.type}",
    )


conv2d_add = Composite(
    "conv2d_add",
    _residual,
    check=_same_shape,
    why="a residual block's sum is taken while the tile is in registers",
    cases=(
        Case(
            lambda x, weight, bias, residual: op.relu(
                op.add(op.bias_add(op.conv2d(x, weight, padding=1), bias), residual)
            ),
            name="resnet", x=(1, 128, 28, 28), weight=(128, 128, 3, 3), bias=(128,), residual=(1, 128, 28, 28),
            constants=_WEIGHTS,
        ),
        Case(
            lambda x, weight, residual: op.add(residual, op.conv2d(x, weight)),
            name="tail", x=(2, 7, 9, 11), weight=(5, 7, 1, 1), residual=(2, 5, 9, 11),
        ),
    ),
)  # fmt: skip
