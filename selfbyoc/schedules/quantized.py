"""int8 conv2d + bias + (shift | requantize | scale and round) + clip + cast.

Accelerators such as VTA take an int8 convolution only with what brings its int32 sums back to
8 bits. Written out alone, the sums cost four times the memory of the image; here they never leave
the registers.
"""

from __future__ import annotations

import math
from typing import Any

from ..composite import Case, Composite, require
from ..partition.pattern import either, op
from . import direct, direct_schedule
from .exact import sum_dtype, widened

NCHW = {"data_layout": "NCHW", "kernel_layout": "OIHW", "out_layout": "NCHW"}
NARROW = ("int8", "uint8")


def _narrowed(y: Any, rounding: Any, shift: Any, scale: Any) -> Any:
    """int32 sums brought back to 8 bits, in one of the ways that quantisers write."""
    shifted = either(op.right_shift(op.add(y, rounding), shift), op.right_shift(y, shift))
    wide = op.cast(y)
    rounded = op.round(either(op.multiply(wide, scale), op.divide(wide, scale)))
    fixed = op.requantize(y)
    return either(op.cast(op.clip(either(shifted, rounded, fixed))), op.clip(fixed), fixed)


def _pattern(x: Any, weight: Any, bias: Any, rounding: Any, shift: Any, scale: Any) -> Any:
    return _chain(op.conv2d(x, weight, **NCHW), bias, rounding, shift, scale)


def _other_layouts(x: Any, weight: Any, bias: Any, rounding: Any, shift: Any, scale: Any) -> Any:
    return _chain(op.conv2d(x, weight), bias, rounding, shift, scale)


def _chain(sums: Any, bias: Any, rounding: Any, shift: Any, scale: Any) -> Any:
    sums = either(op.bias_add(sums, bias), sums)
    return _narrowed(either(op.relu(sums), sums), rounding, shift, scale)


def _pack_weight(weight: Any) -> Any:
    """As for floats, and widened: what is broadcast to a vector needs no conversion in the loop."""
    _, *terms = (int(extent) for extent in weight.shape)
    return direct.pack_weight(widened(weight, sum_dtype(math.prod(terms), "int8", weight.dtype)))


def _conv2d(ins: Any, call: Any) -> Any:
    """The direct convolution of floats on widened integers."""
    x, weight = ins
    dtype = sum_dtype(math.prod(call.inputs[1].shape[1:]), x.dtype, call.inputs[1].dtype)
    if str(weight.dtype) != dtype:
        weight = widened(weight, dtype)
    sums = direct.conv2d([_Widened(x, dtype), weight], call)
    return widened(sums, "int32")


class _Widened:
    """A tensor read in another dtype: no stage of its own, so that the padded copy widens too."""

    def __init__(self, tensor: Any, dtype: str) -> None:
        self.tensor, self.shape, self.dtype = tensor, tensor.shape, dtype

    def __call__(self, *index: Any) -> Any:
        return self.tensor(*index).astype(self.dtype)


def _check(match: Any) -> None:
    conv = match.op("conv2d")
    for value in conv.inputs:
        require(value.dtype in NARROW, f"only int8 and uint8 are narrowed, found {value.type}")
    require(conv.outputs[0].dtype == "int32", f"sums are int32, found {conv.outputs[0].dtype}")
    require(
        match.root.outputs[0].dtype in NARROW,
        f"the result is {match.root.outputs[0].dtype}, not 8 bits",
    )
    for name in ("rounding", "shift", "scale"):
        value = getattr(match, name)
        require(value is None or value.scalar is not None, f"{name} is no constant of one element")
    require(match.shift is None or 0 <= match.shift.scalar < 32, "the shift is not within 0 to 31")
    for call in match.of("requantize"):
        rounding = call.attrs.get("rounding")
        require(
            rounding in (None, "None", "UPWARD"),
            f"requantize rounds {rounding}; only UPWARD is known",
        )


def _sums(x: Any, weight: Any, bias: Any, **attrs: Any) -> Any:
    return op.bias_add(op.conv2d(x, weight, out_dtype="int32", **attrs), bias)


def _byte(y: Any, low: int = -128, high: int = 127) -> Any:
    return op.cast(op.clip(y, a_min=low, a_max=high), dtype="int8")


def _shift(x: Any, weight: Any, bias: Any) -> Any:
    return _byte(op.right_shift(_sums(x, weight, bias, padding=1), 10))


def _rounding_shift(x: Any, weight: Any, bias: Any) -> Any:
    y = _sums(x, weight, bias, strides=2, padding=(0, 1, 1, 0))
    return _byte(op.right_shift(op.add(op.relu(y), 512), 10), 0, 100)


def _float_scale(x: Any, weight: Any, bias: Any) -> Any:
    # A power of two: float32 and float64 round the same values, so the comparison can be exact.
    y = op.cast(_sums(x, weight, bias, padding=1), dtype="float32")
    return _byte(op.round(op.multiply(y, 2.0**-10)))


def _requantize(x: Any, weight: Any, bias: Any) -> Any:
    y = _sums(x, weight, bias, padding=1)
    return op.clip(
        op.requantize(y, input_scale=0.0037, output_scale=3.1, out_dtype="int8"),
        a_min=-90,
        a_max=90,
    )


def _depthwise(x: Any, weight: Any, bias: Any) -> Any:
    return _byte(op.right_shift(_sums(x, weight, bias, groups=12, padding=1, strides=2), 6))


def _nhwc(x: Any, weight: Any, bias: Any) -> Any:
    y = op.conv2d(x, weight, data_layout="NHWC", kernel_layout="HWIO", padding=1, out_dtype="int32")
    return _byte(op.right_shift(op.bias_add(y, bias, axis=3), 10))


def _wide_requantize(x: Any, weight: Any) -> Any:
    y = op.conv2d(x, weight, out_dtype="int32", groups=4)
    scales = {"input_scale": 0.002, "output_scale": 0.9, "output_zero_point": 3}
    return _byte(op.requantize(y, out_dtype="int32", **scales))


def _integers(x: tuple[int, ...], weight: tuple[int, ...], dtype: str = "int8") -> dict[str, Any]:
    return {"x": (x, dtype), "weight": (weight, "int8"), "bias": ((weight[0],), "int32")}


_WEIGHTS = ("weight", "bias")

conv2d_narrowed = Composite(
    "conv2d_narrowed",
    _pattern,
    direct_schedule.CPU,
    check=_check,
    compute={"conv2d": _conv2d},
    pack={"weight": _pack_weight},
    why="the int32 sums never leave the registers",
    cases=(
        Case(_shift, **_integers((1, 16, 14, 14), (32, 16, 3, 3)), constants=_WEIGHTS),
        Case(_shift, **_integers((2, 5, 9, 11), (7, 5, 3, 3))),
        Case(_rounding_shift, **_integers((3, 6, 15, 13), (10, 6, 2, 2)), constants=_WEIGHTS),
        Case(_float_scale, **_integers((1, 12, 10, 9), (19, 12, 3, 3)), constants=_WEIGHTS),
        Case(_depthwise, **_integers((2, 12, 9, 11), (24, 1, 3, 3)), constants=_WEIGHTS),
        Case(
            _requantize, **_integers((2, 12, 10, 9), (19, 12, 3, 3)), constants=_WEIGHTS,
            generations=("relay",),
        ),
        Case(
            _wide_requantize, x=((1, 16, 7, 8), "int8"), weight=((12, 4, 1, 1), "int8"),
            constants=["weight"], generations=("relay",),
        ),
        Case(_shift, **_integers((1, 64, 28, 28), (64, 64, 3, 3)), constants=_WEIGHTS),
    ),
)  # fmt: skip

conv2d_narrowed_any_layout = Composite(
    "conv2d_narrowed_any_layout",
    _other_layouts,
    check=_check,
    why="the int32 sums never leave the registers",
    cases=(
        Case(
            _nhwc, x=((2, 9, 7, 12), "int8"), weight=((3, 3, 12, 19), "int8"),
            bias=((19,), "int32"), constants=_WEIGHTS,
        ),
        Case(
            _nhwc, x=((1, 14, 14, 16), "int8"), weight=((3, 3, 16, 32), "int8"),
            bias=((32,), "int32"),
        ),
    ),
)  # fmt: skip
