"""Relay: a requantised product of levels (qnn.conv2d, qnn.dense) around zero points as one of
integers around 0, which kernels whose sums stay integers take. Exact: what the zero point of the
activation adds to a sum depends on the output alone.

    requantize(qnn.conv2d(x, weight, zero) + bias)
      ->  requantize(conv2d(pad(x, zero), weight) + (bias - zero * sum(weight)))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.rewriting import Editor, Made, dtype, size_one
from ...ops.attrs import quad
from ...tvm.types import Expr
from ..level_values import around_zero
from ..levels import number
from ..padded_levels import holds
from .multiplied import one_input_each

_BEHIND = ("add", "nn.bias_add")
_OF_CONV = ("strides", "dilation", "groups", "channels", "kernel_size", "data_layout", "out_layout")


@dataclass(frozen=True)
class _Product:
    """Around 0: its sums, what its zero point adds for each output, and the axis of these."""

    sums: Expr
    added: np.ndarray
    axis: int


def around_zero_points(made: Made, to: Editor) -> Expr | None:
    """The sums of constant weights that are requantised, by one scale or one for each channel,
    perhaps with a bias.
    """
    if made.name != "qnn.requantize" or not all(size_one(to, x) for x in made.args[2:]):
        return None
    behind = to.made(made.args[0])
    biased = behind if behind is not None and behind.name in _BEHIND else None
    found = _of_product(behind if biased is None else to.made(biased.args[0]), to)
    if found is None:
        return None
    sums = _biased(found, biased, to)
    return None if sums is None else to.again(made, [sums, *made.args[1:]])


def _biased(found: _Product, bias: Made | None, to: Editor) -> Expr | None:
    """The sums with their bias: one of constants, unless nothing is added to it."""
    if bias is None and not found.added.any():
        return found.sums
    given = np.zeros((), "int32") if bias is None else to.array(bias.args[1])
    if bias is not None and not found.added.any():
        return to.again(bias, [found.sums, *bias.args[1:]])
    if given is None or given.size not in (1, found.added.size):
        return None
    moved = (given.reshape(-1) + found.added).astype("int32")
    return to.emit("bias_add", found.sums, to.constant(moved), axis=found.axis)


def _of_product(product: Made | None, to: Editor) -> _Product | None:
    if product is None or product.name not in ("qnn.conv2d", "qnn.dense"):
        return None
    x, weight, *zeros = product.args[:4]
    arrays = [to.array(number(zero, to)) for zero in zeros]
    if any(zero is None or zero.size != 1 for zero in arrays):
        return None
    array = around_zero(to.array(weight), arrays[1], 0)
    is_wide = str(product.raw["out_dtype"]) != "int32"
    if array is None or array.dtype != np.int8 or is_wide or not holds(x, zeros[0], to):
        return None
    (zero,) = (int(point.flat[0]) for point in arrays[:1] if point is not None)
    return (_dense if product.name == "qnn.dense" else _conv2d)(product, array, zero, to)


def _dense(product: Made, weight: np.ndarray, zero: int, to: Editor) -> _Product:
    sums = to.call("nn.dense", product.args[0], to.constant(weight), out_dtype="int32")
    return _Product(sums, -zero * weight.sum(axis=1, dtype=np.int64), -1)


def _conv2d(conv: Made, array: np.ndarray, zero: int, to: Editor) -> _Product | None:
    weight, layout = one_input_each(to.constant(array), conv, to)
    layout = layout or str(conv.raw["kernel_layout"])
    by_output = _by_output(to.array(weight), layout)
    if by_output is None:
        return None
    image, padding = _padded(conv, zero, to)
    attrs = {name: conv.raw[name] for name in _OF_CONV}
    sums = to.call(
        "nn.conv2d", image, weight, padding=padding, kernel_layout=layout, out_dtype="int32",
        **attrs,
    )  # fmt: skip
    return _Product(sums, -zero * by_output, str(conv.raw["data_layout"]).index("C"))


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
