"""Sums of levels as levels of another scale: products of 64 bits, shifted right, as Relay's qnn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import UnsupportedOp
from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.types import Attr, Attrs, PrimExpr
from .attrs import Raw, like, must, only, plain
from .fixed_point import fixed_point, within_64_bits
from .kind import OWN, Array, OpKind, Typed, along, form

if TYPE_CHECKING:
    from ..tvm.types import Tensor

UPWARD, TO_NEAREST = "UPWARD", "TONEAREST"  # halves up, or away from zero, as TVM calls them
FACTORS = "int32"  # of multipliers and shifts
UPPER = 33  # from so many bits on a shift leaves of a product of 64 nothing but its upper half
HALF = 1 << 30  # the multiplier of powers of two
Factors = Callable[[Sequence[PrimExpr]], tuple[PrimExpr, PrimExpr]]


def _ratio(attrs: Attrs) -> float:
    """Of the scales as a model has them: in float32."""
    return float(np.float32(attrs["input_scale"])) / float(np.float32(attrs["output_scale"]))


def _of_all(attrs: Attrs) -> tuple[int, int]:
    return within_64_bits(*fixed_point(_ratio(attrs)))


def _wide(value: int) -> PrimExpr:
    return tir.const(value, "int64")


def _requantize(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """By one scale, which the kernel knows."""
    if "input_scale" not in call.attrs:
        raise UnsupportedOp(f"{call.name}: scales that are no constants have no compute here")
    multiplier, shift = _of_all(call.attrs)
    return _scaled(ins[0], call, lambda _: (_wide(multiplier), _wide(shift)), shift)


def _by_channel(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """By multipliers and shifts along an axis, which a kernel is passed."""
    x, multiplier, shift = ins
    axis = call.attrs["axis"] % len(x.shape)

    def factors(index: Sequence[PrimExpr]) -> tuple[PrimExpr, PrimExpr]:
        return multiplier(index[axis]).astype("int64"), shift(index[axis]).astype("int64")

    return _scaled(x, call, factors, call.attrs["least_shift"])


def _scaled(x: Tensor, call: OpCall, factors: Factors, least: int) -> Tensor:
    a, dtype = call.attrs, call.outputs[0].dtype

    def element(*i: PrimExpr) -> PrimExpr:
        multiplier, shift = factors(i)
        product = (x(*i).astype("int64") - _wide(a["input_zero_point"])) * multiplier
        value = _rounded(product, shift, least, a["rounding"])
        held = dtype_of(value)
        value = value + tir.const(a["output_zero_point"], held)
        low, high = (end(dtype).astype(held) for end in (tir.min_value, tir.max_value))
        return tir.Max(tir.Min(value, high), low).astype(dtype)

    return te.compute(x.shape, element, name=call.name)


def _rounded(product: PrimExpr, shift: PrimExpr, least: int, rounding: str = UPWARD) -> PrimExpr:
    """64 bits, shifted right by `least` or more; in 32 where the upper half is enough. Of 64 CPUs
    have few instructions: before AVX-512 none that shifts signed ones, and no minimum.
    """
    bits = _wide(32)
    if least >= UPPER and rounding == UPWARD:
        narrow = (shift - bits).astype("int32")
        half = tir.const(1, "int32") << (narrow - tir.const(1, "int32"))
        return ((product >> bits).astype("int32") + half) >> narrow
    half = _wide(1) << (shift - _wide(1))
    if rounding == TO_NEAREST:
        half = half + tir.Select(product < _wide(0), _wide(-1), _wide(0))
    if least < UPPER:
        return (product + half) >> shift
    return ((product + half) >> bits).astype("int32") >> (shift - bits).astype("int32")


def _numpy_requantize(ins: Sequence[Array], call: OpCall) -> Array:
    multiplier, shift = map(np.asarray, _of_all(call.attrs))
    return _numpy_scaled(ins[0], call, multiplier, shift)


def _numpy_by_channel(ins: Sequence[Array], call: OpCall) -> Array:
    x, *factors = ins
    axis = call.attrs["axis"]
    multiplier, shift = (along(factor, axis, x.ndim).astype(np.int64) for factor in factors)
    return _numpy_scaled(x, call, multiplier, shift)


def _numpy_scaled(x: Array, call: OpCall, multiplier: Array, shift: Array) -> Array:
    a, limits = call.attrs, np.iinfo(np.dtype(call.outputs[0].dtype))
    product = (x.astype(np.int64) - a["input_zero_point"]) * multiplier
    half = np.int64(1) << (shift - 1)
    if a["rounding"] == TO_NEAREST:
        half = half - (product < 0)
    value = ((product + half) >> shift) + a["output_zero_point"]
    return np.clip(value, limits.min, limits.max).astype(limits.dtype)


def _fixed(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """As TVM lowers it: a power of two in the dtype itself, all others in 64 bits."""
    (x,) = ins
    multiplier, shift = call.attrs["multiplier"], 31 - call.attrs["shift"]

    def element(*i: PrimExpr) -> PrimExpr:
        value = x(*i)
        if multiplier == HALF and shift <= 30:
            return value << tir.const(30 - shift, x.dtype)
        if multiplier == HALF:
            half = tir.const(1 << (shift - 31), x.dtype)
            return (value + half) >> tir.const(shift - 30, x.dtype)
        product = value.astype("int64") * _wide(multiplier)
        return _rounded(product, _wide(shift), shift).astype("int32").astype(x.dtype)

    return te.compute(x.shape, element, name=call.name)


def _numpy_fixed(ins: Sequence[Array], call: OpCall) -> Array:
    (x,) = ins
    multiplier, shift = call.attrs["multiplier"], 31 - call.attrs["shift"]
    if multiplier == HALF and shift <= 30:
        return x << x.dtype.type(30 - shift)
    if multiplier == HALF:
        return (x + x.dtype.type(1 << (shift - 31))) >> x.dtype.type(shift - 30)
    product = x.astype(np.int64) * multiplier + (1 << (shift - 1))
    return (product >> shift).astype(np.int32).astype(x.dtype)


def _types(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    (shape, dtype), *factors = ins
    axis = attrs["axis"]
    if not -len(shape) <= axis < len(shape) or "int" not in dtype:
        raise ValueError(f"expected integers with an axis {axis}, found {len(shape)} of {dtype}")
    for found, kind in factors:
        if len(found) != 1 or kind != FACTORS or _differ(found[0], shape[axis]):
            text = f"expected multipliers and shifts of {FACTORS}, one for each of {shape[axis]}"
            raise ValueError(f"{text}, found {list(found)} of {kind}")
    return [(shape, str(attrs["out_dtype"]))]


def _differ(one: Attr, other: Attr) -> bool:
    """Whether both are known, and not the same."""
    try:
        return int(one) != int(other)
    except (TypeError, ValueError):
        return False


def _read(raw: Raw) -> dict[str, Attr]:
    """TVM's default of both is what the vocabulary's op means."""
    rounding = str(plain(raw["rounding"]))
    known = {"None": UPWARD}
    return {"out_dtype": plain(raw["out_dtype"]), "rounding": known.get(rounding, rounding)}


_ATTRS = {
    "axis": -1, "out_dtype": "int8", "rounding": UPWARD, "input_zero_point": 0,
    "output_zero_point": 0, "least_shift": 1,
}  # fmt: skip

KINDS = (
    OpKind(
        "fixed_point_multiply",
        _fixed,
        _numpy_fixed,
        read_attrs=("multiplier", "shift"),
        relay=form("fixed_point_multiply", only("multiplier", "shift")),
        fuses="elemwise",
        takes="x",
        doc=(
            "round(x * multiplier / 2 ** (31 - shift)), halves up, in 64 bits (of a power of two, "
            "a multiplier of 1 << 30, in x's own); bit for bit as Relay's."
        ),
    ),
    OpKind(
        "requantize",
        _requantize,
        _numpy_requantize,
        attrs={"rounding": UPWARD},
        read_attrs=(
            "out_dtype", "input_scale", "input_zero_point", "output_scale",
            "output_zero_point",
        ),
        relay=form(
            "qnn.requantize",
            _read,
            idle=("axis",),  # of scales by channel, which another kind has
            needs={"compute_dtype": must("None", "int64")},
        ),
        fuses="elemwise",
        takes="x",
        doc=(
            "round((x - input_zero_point) * input_scale / output_scale) + output_zero_point, "
            "limited to the range of out_dtype, in fixed point of 64 bits; bit for bit as Relay's."
        ),
    ),
    OpKind(
        "requantize_by_channel",
        _by_channel,
        _numpy_by_channel,
        inputs=3,
        attrs=_ATTRS,
        types=_types,
        relay=form(OWN + "requantize_by_channel", like(_ATTRS)),
        relax=form(OWN + "requantize_by_channel", like(_ATTRS)),
        fuses="elemwise",
        is_folded=False,
        takes="x multiplier shift",
        numbers={1: FACTORS, 2: FACTORS},
        doc=(
            "round((x - input_zero_point) * multiplier / 2 ** shift) + output_zero_point, limited "
            "to the range of out_dtype, in 64 bits; multiplier and shift (least_shift to 62) are "
            "vectors of int32 along one axis of x."
        ),
    ),
)  # fmt: skip
