"""Relay: products of levels in int32 (qnn.dense, qnn.conv2d) as those of dequantised levels.

    cast(qnn.dense(x, w) + bias)  ->  dense(dequantize(x, 1), dequantize(w, 1)) + cast(bias)

Both are exact where kernels of levels compute them.
"""

from __future__ import annotations

import numpy as np

from ...ir.rewriting import Editor, Made, cast, size_one
from ...ops.fixed_point import MOST_OF_TWO
from ...tvm.types import Expr
from ..level_values import around_zero, is_middle
from ..levels import number
from ..padded_levels import holds
from .multiplied import one_input_each

_OF_CONV = (
    "strides", "padding", "dilation", "groups", "channels", "kernel_size", "data_layout",
    "kernel_layout", "out_layout",
)  # fmt: skip

_PRODUCTS = ("qnn.dense", "qnn.batch_matmul", "qnn.conv2d")
_BEHIND = ("add", "nn.bias_add", "reshape", "squeeze")  # what may be between sums and their cast


def integers_as_levels(made: Made, to: Editor) -> Expr | None:
    """A product of levels in int32 as floats, perhaps with a bias or in other rows."""
    if made.name == "qnn.dequantize":
        return _dequantized(made, to)
    if made.name != "cast" or str(made.raw["dtype"]) != "float32":
        return None
    return _of_floats(to.made(made.args[0]), to)


def _dequantized(made: Made, to: Editor) -> Expr | None:
    """The same times a scale, of all or along an axis."""
    sums, scale, zero = made.args
    array, is_zero = to.array(scale), is_middle(to.array(zero), "int32")
    floats = _of_floats(to.made(sums), to) if array is not None and is_zero else None
    if array is None or floats is None or str(made.raw["out_dtype"]) != "float32":
        return None
    behind = (-1 - int(made.raw["axis"])) % len(to.shape(sums) or ())
    column = (-1, *[1] * behind) if array.size > 1 else ()
    return to.emit("multiply", floats, to.constant(array.reshape(column)))


def _of_floats(sums: Made | None, to: Editor) -> Expr | None:
    if sums is None or sums.name not in _BEHIND:
        return _product(sums, to)
    floats = _of_floats(to.made(sums.args[0]), to)
    if floats is None:
        return None
    return to.again(sums, [floats, *(_floating(bias, to) for bias in sums.args[1:])])


def _floating(bias: Expr, to: Editor) -> Expr:
    array = to.array(bias)
    return cast(to, bias, "float32") if array is None else to.constant(array.astype("float32"))


def _product(product: Made | None, to: Editor) -> Expr | None:
    if product is None or product.name not in _PRODUCTS:
        return None
    x, weight, *zeros = product.args[:4]
    zeros[1] = number(zeros[1], to)
    if product.name != "qnn.conv2d" and to.array(weight) is None:
        return _of_two(product, to)
    array, zero = to.array(weight), to.array(zeros[1])
    if array is None or zero is None or zero.size != 1 or not holds(x, zeros[0], to):
        return None  # no kernel of levels takes it: floats would not be exact
    if not is_middle(zero, str(array.dtype)):
        if (moved := around_zero(array, zero, 0)) is None:
            return None
        weight, zeros[1] = to.constant(moved), to.constant(np.zeros((), "int32"))
    changed = {}
    if product.name == "qnn.conv2d":
        weight, layout = one_input_each(weight, product, to)
        changed = {"kernel_layout": layout} if layout else {}
    one = to.constant(np.ones((), "float32"))
    both = [
        to.emit("dequantize", levels, one, zero, axis=0, out_dtype="float32")
        for levels, zero in zip((x, weight), zeros, strict=True)
    ]
    if product.name != "qnn.conv2d":
        return _by_rows(product, both, to)
    attrs = {name: product.raw[name] for name in _OF_CONV}
    return to.call("nn.conv2d", *both, **{**attrs, **changed})


def _of_two(product: Made, to: Editor) -> Expr | None:
    """One of which both sides are computed, as in attention."""
    both = product.args[:2], product.args[2:4]
    sides = list(zip(*both, strict=True))
    depth = (to.shape(product.args[0]) or [None])[-1]
    if depth is None or depth > MOST_OF_TWO:
        return None
    if not all(size_one(to, zero) and holds(levels, zero, to) for levels, zero in sides):
        return None
    one = to.constant(np.ones((), "float32"))
    floats = [
        to.emit("dequantize", levels, one, zero, axis=0, out_dtype="float32")
        for levels, zero in sides
    ]
    return _by_rows(product, floats, to)


def _by_rows(product: Made, both: list[Expr], to: Editor) -> Expr:
    """The product of floats, whose right side lies by its units."""
    if product.name == "qnn.dense":
        return to.call("nn.dense", *both)
    return to.call("nn.batch_matmul", *both, transpose_a=False, transpose_b=True)
