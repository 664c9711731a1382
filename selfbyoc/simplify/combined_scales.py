"""One factor from a sum of levels to the next level: `build(mod, requantize="combined")`.

A QuantizeLinear divides what a layer scaled and added to. ONNX Runtime and OpenVINO multiply the
sum by one number instead, x_scale * w_scale / y_scale, which QLinearConv means, too:

    quantize(conv(dequantize(x, xs, xz), dequantize(w, ws, wz)) + bias, ys, yz)
    quantize((conv(dequantize(x, 1, xz), dequantize(w, 1, wz)) + bias / (xs * ws)) * (xs * ws / ys),
             1, yz)

A quantizer of scale 1 divides by nothing. In real numbers both are the same; in float32 a level
next to a half may be its neighbour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.generation import rewritten
from ..ir.rewriting import Editor, Made
from ..tvm.types import Expr, IRModule
from .levels import is_dequantized
from .padded_levels import MOVES
from .weights import is_swap

Array = np.ndarray
# The axis of a weight that its scales may lie along, and the axes behind that of the results.
_UNITS = {"conv2d": (0, 2), "dense": (0, 0), "matmul": (1, 0)}
# f(x / s) is f(x) / s for s above 0, of all of these, and f(x / s, y / s) f(x, y) / s.
_HOMOGENEOUS = ("avg_pool2d", "global_avg_pool2d", "leaky_relu", "mean", "relu")
_OF_TWO = ("add", "bias_add", "maximum", "minimum", "subtract")
_ONE = np.ones((), np.float32)


def with_combined_scales(mod: IRModule) -> IRModule:
    """The prepared module; what is made of levels by products, sums and moves alone, and read by
    one quantizer, becomes levels by one factor.
    """
    readers, taken = Counter[Expr](), set[Expr]()

    def count(made: Made, to: Editor) -> None:
        for arg in made.given:
            readers.update(to.fields(arg) or [arg])

    def choose(made: Made, to: Editor) -> None:
        is_known = made.kind == "quantize" and _scale(made.args[1], to) is not None
        if is_known and _is_linear(made.args[0], readers, to):
            taken.add(made.call)

    def combined(made: Made, to: Editor) -> Expr | None:
        scale = _scale(made.args[1], to) if made.call in taken else None
        if scale is None:
            return None
        value = _over(made.args[0], scale, to)
        return to.again(made, [value, to.constant(_ONE), made.args[2]])

    for rewriting in (count, choose, combined):
        mod = rewritten(mod, rewriting)
    return mod


def _scale(x: Expr, to: Editor) -> Array | None:
    """The one scale of all levels, where it is known."""
    array = to.array(x)
    is_one = array is not None and array.size == 1 and array.dtype == np.float32
    return array.reshape(()) if array is not None and is_one and array.flat[0] > 0 else None


def _is_linear(x: Expr, readers: Counter[Expr], to: Editor) -> bool:
    """Whether a value is made of levels by what can be scaled before as well as after."""
    made = to.made(x)
    if made is None or readers[x] > 1:
        return False
    if is_dequantized(made):
        return _scale(made.args[1], to) is not None
    if made.kind in _UNITS:
        return _factor(made, to) is not None
    if made.kind == "clip" and _limits(made) is None:
        return False
    if made.kind in ("clip", *_HOMOGENEOUS) or made.name in MOVES:
        return _is_linear(made.args[0], readers, to)
    if made.kind not in _OF_TWO:
        return False
    *args, last = made.args
    parts = args if _constant(last, to) is not None else made.args
    return all(_is_linear(part, readers, to) for part in parts)


def _over(x: Expr, scale: Array, to: Editor) -> Expr:
    """What is linear in levels, divided by a scale."""
    array, made = _constant(x, to), to.made(x)
    if array is not None or made is None:
        return to.constant(np.asarray(array) / scale)
    if is_dequantized(made):
        return _dequantized(made, np.asarray(to.array(made.args[1])) / scale, to)
    product = _product(made, to)
    if product is not None:
        return to.emit("multiply", product[0], to.constant(product[1] / scale))
    limits = _limits(made) if made.kind == "clip" else None
    if limits is not None:
        low, high = (float(np.float32(end) / scale) for end in limits)
        return to.emit("clip", _over(made.args[0], scale, to), a_min=low, a_max=high)
    count = 2 if made.kind in _OF_TWO else 1
    args = [_over(arg, scale, to) for arg in made.args[:count]]
    return to.again(made, [*args, *made.args[count:]])


def _limits(made: Made) -> tuple[float, float] | None:
    """Of a clip: attributes, or what Relax calls it with."""
    attrs: Mapping[str, Any] = made.attrs
    if "a_min" in attrs:
        return float(attrs["a_min"]), float(attrs["a_max"])
    found: list[Any] = [getattr(arg, "value", arg) for arg in made.args[1:]]
    found = [getattr(end, "value", end) for end in found]  # 0.26 has a PrimValue around it
    return (float(found[0]), float(found[1])) if len(found) == 2 else None


def _product(made: Made, to: Editor) -> tuple[Expr, Array] | None:
    """A product of levels (+ bias) as one of integers, and what each channel of it is worth."""
    if made.kind in ("add", "bias_add"):
        before, bias = to.made(made.args[0]), _constant(made.args[1], to)
        found = None if before is None or bias is None else _product(before, to)
        if found is None or bias is None:
            return None
        each = found[1].reshape(-1) if made.kind == "bias_add" else found[1]
        return to.again(made, [found[0], to.constant(_as_integers(bias, each))]), found[1]
    factor = _factor(made, to) if made.kind in _UNITS else None
    if factor is None:
        return None
    sides = [_integers(arg, to) for arg in made.args[:2]]
    return to.again(made, [*sides, *made.args[2:]]), factor


def _integers(side: Expr, to: Editor) -> Expr:
    """What is multiplied, dequantised by 1."""
    made = to.made(side)
    if made is None or is_dequantized(made):
        return side if made is None else _dequantized(made, _ONE, to)
    return to.again(made, [_integers(made.args[0], to), *made.args[1:]])  # transposed


def _as_integers(bias: Array, factor: Array) -> Array:
    """A bias in sums: the int32 that a quantiser made of it, where it did."""
    found = bias.astype(np.float64) / factor
    whole = np.rint(found)
    return np.where(abs(found - whole) <= abs(whole) * 2.0**-22, whole, found).astype(np.float32)


def _factor(made: Made, to: Editor) -> Array | None:
    """x_scale * w_scale of a product, beside its results; None of one that has no such."""
    x, weight = (to.made(arg) for arg in made.args[:2])
    is_turned = weight is not None and is_swap(weight)  # dense layers of Relax have it so
    if weight is not None and is_turned:
        weight = to.made(weight.args[0])
    if not (is_dequantized(x) and is_dequantized(weight)) or x is None or weight is None:
        return None
    one, scales = _scale(x.args[1], to), to.array(weight.args[1])
    if one is None or scales is None or not (scales > 0).all():
        return None
    if scales.size == 1:
        return one * scales.reshape(())
    axis, behind = _UNITS[made.kind]
    rank = max(1, len(to.shape(made.args[1]) or ()))
    given = int(weight.raw["axis"]) % rank
    is_first = made.kind != "conv2d" or str(made.attrs["data_layout"]) == "NCHW"
    if not is_first or (1 - given if is_turned else given) != axis:
        return None
    return (one * scales).reshape(-1, *[1] * behind)


def _dequantized(made: Made, scale: Array, to: Editor) -> Expr:
    return to.again(made, [made.args[0], to.constant(scale), made.args[2]])


def _constant(x: Expr, to: Editor) -> Array | None:
    """What a constant holds, of another shape, too."""
    made = to.made(x)
    array = to.array(x if made is None or made.name != "reshape" else made.args[0])
    return None if array is None else array.reshape(to.shape(x))
