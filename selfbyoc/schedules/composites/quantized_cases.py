"""The cases of quantised convolutions: programs as quantisers write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr, Shape

if TYPE_CHECKING:
    from ...language.nodes import Node


def _sums(x: Node, weight: Node, bias: Node, **attrs: Attr) -> Node:
    return op.bias_add(op.conv2d(x, weight, out_dtype="int32", **attrs), bias)


def _byte(y: Node, low: int = -128, high: int = 127) -> Node:
    return op.cast(op.clip(y, a_min=low, a_max=high), dtype="int8")


def shift(x: Node, weight: Node, bias: Node) -> Node:
    return _byte(op.right_shift(_sums(x, weight, bias, padding=1), 10))


def rounding_shift(x: Node, weight: Node, bias: Node) -> Node:
    y = _sums(x, weight, bias, strides=2, padding=(0, 1, 1, 0))
    return _byte(op.right_shift(op.add(op.relu(y), 512), 10), 0, 100)


def float_scale(x: Node, weight: Node, bias: Node) -> Node:
    # A power of two: float32 and float64 round the same values, so the comparison can be exact.
    y = op.cast(_sums(x, weight, bias, padding=1), dtype="float32")
    return _byte(op.round(op.multiply(y, 2.0**-10)))


def requantize(x: Node, weight: Node, bias: Node) -> Node:
    y = _sums(x, weight, bias, padding=1)
    return op.clip(
        op.requantize(y, input_scale=0.0037, output_scale=3.1, out_dtype="int8"),
        a_min=-90,
        a_max=90,
    )


def depthwise(x: Node, weight: Node, bias: Node) -> Node:
    return _byte(op.right_shift(_sums(x, weight, bias, groups=12, padding=1, strides=2), 6))


def unbiased(x: Node, weight: Node) -> Node:
    y = op.cast(op.conv2d(x, weight, out_dtype="int32"), dtype="float32")
    return _byte(op.round(op.divide(y, 2.0**9)))


def scaled_requantize(x: Node, weight: Node, bias: Node) -> Node:
    y = op.relu(_sums(x, weight, bias, padding=1))
    return op.requantize(y, input_scale=0.0037, output_scale=3.1, out_dtype="int8")


def _nhwc_sums(x: Node, weight: Node) -> Node:
    return op.conv2d(
        x, weight, data_layout="NHWC", kernel_layout="HWIO", padding=1, out_dtype="int32"
    )


def nhwc(x: Node, weight: Node, bias: Node) -> Node:
    return _byte(op.right_shift(op.bias_add(_nhwc_sums(x, weight), bias, axis=3), 10))


def nhwc_unbiased(how: Callable[[Node], Node]) -> Program:
    def program(x: Node, weight: Node) -> Node:
        return how(_nhwc_sums(x, weight))

    return program


def rounded(y: Node) -> Node:
    return _byte(op.right_shift(op.add(op.relu(y), 64), 7))


def multiplied(y: Node) -> Node:
    return _byte(op.round(op.multiply(op.cast(y, dtype="float32"), 2.0**-9)))


def divided(y: Node) -> Node:
    return _byte(op.round(op.divide(op.cast(y, dtype="float32"), 2.0**9)))


def requantized(y: Node) -> Node:
    return op.requantize(y, input_scale=0.002, output_scale=0.9, out_dtype="int8")


def wide_requantized(y: Node) -> Node:
    return _byte(op.requantize(y, input_scale=0.002, output_scale=0.9, out_dtype="int32"))


def requantized_clip(y: Node) -> Node:
    return op.clip(requantized(y), a_min=-90, a_max=90)


NHWC: dict[str, Any] = {"x": ((1, 7, 6, 5), "int8"), "weight": ((3, 3, 5, 9), "int8")}


def wide_requantize(x: Node, weight: Node) -> Node:
    y = op.conv2d(x, weight, out_dtype="int32", groups=4)
    scales: dict[str, Any] = {"input_scale": 0.002, "output_scale": 0.9, "output_zero_point": 3}
    return _byte(op.requantize(y, out_dtype="int32", **scales))


def integers(x: tuple[int, ...], weight: tuple[int, ...], dtype: str = "int8") -> dict[str, Any]:
    return {"x": (x, dtype), "weight": (weight, "int8"), "bias": ((weight[0],), "int32")}


_WEIGHTS = ("weight", "bias")

NARROWED = (
    Case(shift, **integers((1, 16, 14, 14), (32, 16, 3, 3)), constants=_WEIGHTS),
    Case(shift, **integers((2, 5, 9, 11), (7, 5, 3, 3))),
    Case(rounding_shift, **integers((3, 6, 15, 13), (10, 6, 2, 2)), constants=_WEIGHTS),
    Case(float_scale, **integers((1, 12, 10, 9), (19, 12, 3, 3)), constants=_WEIGHTS),
    Case(depthwise, **integers((2, 12, 9, 11), (24, 1, 3, 3)), constants=_WEIGHTS),
    Case(
        requantize, **integers((2, 12, 10, 9), (19, 12, 3, 3)), constants=_WEIGHTS,
        generations=("relay",),
    ),
    Case(unbiased, x=((1, 9, 8, 7), "int8"), weight=((11, 9, 3, 3), "int8")),
    Case(
        scaled_requantize, **integers((1, 6, 7, 8), (13, 6, 3, 3)), generations=("relay",),
    ),
    Case(
        wide_requantize, x=((1, 16, 7, 8), "int8"), weight=((12, 4, 1, 1), "int8"),
        constants=["weight"], generations=("relay",),
    ),
    Case(shift, **integers((1, 64, 28, 28), (64, 64, 3, 3)), constants=_WEIGHTS),
)  # fmt: skip

ANY_LAYOUT = (
    Case(
        nhwc, x=((2, 9, 7, 12), "int8"), weight=((3, 3, 12, 19), "int8"),
        bias=((19,), "int32"), constants=_WEIGHTS,
    ),
    Case(
        nhwc, x=((1, 14, 14, 16), "int8"), weight=((3, 3, 16, 32), "int8"),
        bias=((32,), "int32"),
    ),
    Case(nhwc_unbiased(rounded), name="rounded", **NHWC),
    Case(nhwc_unbiased(multiplied), name="multiplied", **NHWC),
    Case(nhwc_unbiased(divided), name="divided", **NHWC),
    Case(
        nhwc_unbiased(wide_requantized), name="wide", **NHWC, generations=("relay",),
    ),
    Case(
        nhwc_unbiased(requantized), name="requantized", **NHWC, generations=("relay",),
    ),
    Case(
        nhwc_unbiased(requantized_clip), name="clipped", **NHWC, generations=("relay",),
    ),
)  # fmt: skip


def _levels(**attrs: Attr) -> Program:
    """A convolution of levels, its scale that of each channel."""

    def program(x: Node, weight: Node, w_scale: Node, bias: Node) -> Node:
        image = op.dequantize(x, 2.0**-5, 7)
        y = op.conv2d(image, op.dequantize(weight, w_scale, 0, axis=0), **attrs)
        return op.bias_add(y, bias)

    return program


def _of_levels(name: str, program: Program, x: Shape, weight: Shape, dtype: str = "uint8") -> Case:
    channels = weight[:1]
    return Case(
        program, name=name, x=(x, dtype), weight=(weight, "int8"), w_scale=channels, bias=channels,
        constants=["weight", "w_scale", "bias"],
    )  # fmt: skip


def _unbiased_levels(x: Node, weight: Node) -> Node:
    return op.conv2d(op.dequantize(x, 2.0**-4, -3), op.dequantize(weight, 2.0**-6, 0), padding=1)


LEVELS = (
    Case(
        _unbiased_levels,
        name="unbiased",
        x=((1, 8, 7, 9), "int8"),
        weight=((10, 8, 3, 3), "int8"),
        constants=["weight"],
    ),
    _of_levels("3x3", _levels(padding=1), (1, 16, 14, 15), (24, 16, 3, 3)),
    _of_levels("1x1", _levels(), (1, 64, 28, 28), (32, 64, 1, 1)),
    _of_levels("first-layer", _levels(strides=2, padding=3), (1, 3, 33, 31), (16, 3, 7, 7)),
    _of_levels("signed", _levels(padding=(0, 1, 1, 0)), (2, 19, 9, 7), (21, 19, 3, 3), "int8"),
    _of_levels("grouped", _levels(groups=4, padding=1), (1, 24, 9, 12), (20, 6, 3, 3)),
    _of_levels(
        "depthwise", _levels(groups=12, padding=1, strides=2), (1, 12, 15, 18), (12, 1, 3, 3)
    ),
    _of_levels("1x1-stride-2", _levels(strides=2), (3, 24, 15, 14), (20, 24, 1, 1)),
)
