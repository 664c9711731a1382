"""Relay: a requantised qnn.conv2d around zero points as one around 0, which kernels whose sums stay
integers take. Exact: what the zero point of the image adds to a sum depends on the output alone.

    requantize(conv2d(x, weight, zero) + bias)
      ->  requantize(conv2d(pad(x, zero), weight, 0) + (bias - zero * sum(weight)))
"""

from __future__ import annotations

import numpy as np

from ...ir.rewriting import Editor, Made, dtype, size_one
from ...ops.attrs import quad
from ...tvm.types import Expr
from ..level_values import around_zero
from ..levels import number
from ..padded_levels import holds
from .multiplied import one_input_each


def around_zero_points(made: Made, to: Editor) -> Expr | None:
    """The sums of constant weights that are requantised, by one scale or one for each channel,
    perhaps with a constant bias.
    """
    if made.name != "qnn.requantize" or not all(size_one(to, x) for x in made.args[2:]):
        return None
    sums, bias = to.made(made.args[0]), np.zeros((), "int32")
    if sums is not None and sums.name in ("add", "nn.bias_add"):
        given = to.array(sums.args[1])
        sums, bias = to.made(sums.args[0]), bias if given is None else given
        if given is None:
            return None
    if sums is None or sums.name != "qnn.conv2d":
        return None
    moved = _around_zero(sums, bias, to)
    return None if moved is None else to.again(made, [moved, *made.args[1:]])


def _around_zero(conv: Made, bias: np.ndarray, to: Editor) -> Expr | None:
    zeros = [to.array(number(zero, to)) for zero in conv.args[2:4]]
    if any(zero is None or zero.size != 1 for zero in zeros):
        return None
    points = [int(zero.flat[0]) for zero in zeros if zero is not None]
    array = around_zero(to.array(conv.args[1]), zeros[1], 0)
    if array is None or array.dtype != np.int8 or not holds(conv.args[0], conv.args[2], to):
        return None
    weight, layout = one_input_each(to.constant(array), conv, to)
    layout = layout or str(conv.raw["kernel_layout"])
    by_output = _by_output(to.array(weight), layout)
    if points == [0, 0] or by_output is None or bias.size not in (1, by_output.size):
        return None
    image, padding = _padded(conv, points[0], to)
    none = to.constant(np.zeros((), "int32"))
    inputs = [image, weight, none, none, *conv.args[4:]]
    sums = to.again(conv, inputs, padding=padding, kernel_layout=layout)
    moved = (bias.reshape(-1) - points[0] * by_output).astype("int32")
    axis = str(conv.raw["data_layout"]).index("C")
    return to.emit("bias_add", sums, to.constant(moved), axis=axis)


def _by_output(weight: np.ndarray | None, layout: str) -> np.ndarray | None:
    """The sum of each output's weights; None of blocked layouts."""
    if weight is None or sorted(layout) != sorted("OIHW"):
        return None
    return weight.sum(axis=tuple(map(layout.index, "HWI")), dtype=np.int64)


def _padded(conv: Made, zero: int, to: Editor) -> tuple[Expr, tuple[int, ...]]:
    """The image and its padding: with its zero point around it, where that would be 0."""
    image, padding = conv.args[0], quad(conv.raw["padding"])
    if not zero or not any(padding):
        return image, padding
    top, left, bottom, right = padding
    widths = {"H": (top, bottom), "W": (left, right)}
    layout = str(conv.raw["data_layout"])
    value = to.constant(np.array(zero, dtype(to, image)))
    around = [widths.get(letter, (0, 0)) for letter in layout]
    return to.emit("nn.pad", image, value, pad_width=around), (0, 0, 0, 0)
