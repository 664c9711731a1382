"""Ops of quantised models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import OpCall
from ..tvm import dtype_of, te, tir
from ..tvm.own_ops import nearest, quotient, within
from ..tvm.types import Attr, PrimExpr
from .attrs import Raw, ReadAttrs, plain
from .kind import Array, OpKind, along, form, is_one
from .mathfn import clamp
from .rounded import round_away, round_even

if TYPE_CHECKING:
    from ..tvm.types import Tensor


def _of_axis(tensor: Tensor, index: Sequence[PrimExpr], axis: int) -> PrimExpr:
    """The scale or the zero point of an element: of all, or along an axis."""
    if all(is_one(extent) for extent in tensor.shape):
        return tensor(*(0 for _ in tensor.shape))
    return tensor(index[axis])


def _quantize(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    x, scale, zero = ins
    axis, dtype = call.attrs["axis"] % max(1, len(x.shape)), call.attrs["out_dtype"]
    rounded = round_even if call.attrs["ties"] == "even" else round_away

    def element(*i: PrimExpr) -> PrimExpr:
        value, factor = x(*i), _of_axis(scale, i, axis)
        point = _of_axis(zero, i, axis).astype(dtype_of(value))
        # Limits before the division: a level is the same, and no quotient large or infinite. What
        # is rounded to an integer within limits needs none after it.
        ends = [(end.astype(dtype_of(value)) - point) * factor for end in _ends(dtype)]
        is_turned = factor < tir.const(0, dtype_of(factor))
        low, high = (tir.Select(is_turned, *pair) for pair in (ends[::-1], ends))
        if dtype_of(value) != "float32":
            return (rounded(clamp(value, low, high) / factor) + point).astype(dtype)
        over = quotient(within(value, low, high), factor)
        if call.attrs["ties"] != "even":
            return (rounded(over) + point).astype(dtype)
        return nearest(over, _of_axis(zero, i, axis).astype("int32"), *_ends(dtype)).astype(dtype)

    return te.compute(x.shape, element, name=call.name)


def _ends(dtype: str) -> list[PrimExpr]:
    return [value(dtype).astype("int32") for value in (tir.min_value, tir.max_value)]


def _dequantize(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    x, scale, zero = ins
    axis, dtype = call.attrs["axis"] % max(1, len(x.shape)), call.attrs["out_dtype"]

    def element(*i: PrimExpr) -> PrimExpr:
        level = x(*i).astype("int32") - _of_axis(zero, i, axis).astype("int32")
        return level.astype(dtype) * _of_axis(scale, i, axis)

    return te.compute(x.shape, element, name=call.name)


def _numpy_of_axis(ins: Sequence[Array], call: OpCall) -> Iterator[Array]:
    """Scales and zero points as arrays that lie beside the first input."""
    for factor in ins[1:]:
        column = factor.size > 1
        yield along(factor, call.attrs["axis"], ins[0].ndim) if column else factor.reshape(())


def _numpy_quantize(ins: Sequence[Array], call: OpCall) -> Array:
    scale, zero = _numpy_of_axis(ins, call)
    dtype = np.dtype(call.outputs[0].dtype)
    # As the op divides, in float32: of a quotient that lies near a half the level may differ.
    quotient = ins[0].astype(np.float32) / scale.astype(np.float32)
    even = call.attrs["ties"] == "even"
    level = np.round(quotient) if even else np.trunc(quotient + np.copysign(_BELOW, quotient))
    limits = np.iinfo(dtype)
    return np.clip(level + zero.astype(np.float32), limits.min, limits.max).astype(dtype)


_BELOW = np.nextafter(np.float32(0.5), np.float32(0))


def _numpy_dequantize(ins: Sequence[Array], call: OpCall) -> Array:
    scale, zero = _numpy_of_axis(ins, call)
    return (ins[0].astype(np.int64) - zero.astype(np.int64)) * scale.astype(np.float64)


def _quantize_attrs(ties: str) -> ReadAttrs:
    def read(raw: Raw) -> dict[str, Attr]:
        return {**_axis_and_dtype(raw), "ties": ties}

    return read


def _axis_and_dtype(raw: Raw) -> dict[str, Attr]:
    return {"axis": plain(raw["axis"]), "out_dtype": str(plain(raw["out_dtype"]))}


# A zero point in the middle of a dtype is none to what reads levels: its expressions are shorter.
MIDDLES = (0, 128)
_ONES = (1.0,)  # nor is a scale one: a product of integers, scaled by an op behind it

KINDS = (
    OpKind(
        "dequantize",
        _dequantize,
        _numpy_dequantize,
        inputs=3,
        attrs={"axis": -1, "out_dtype": "float32"},
        relay=form("qnn.dequantize", _axis_and_dtype),
        relax=form("dequantize", _axis_and_dtype),
        fuses="elemwise",
        is_folded=False,
        takes="x scale zero_point",
        numbers={1: "float32", 2: "int32"},
        passed={1: _ONES, 2: MIDDLES},
        doc="(x - zero_point) * scale; both are one number, or a vector along one axis of x.",
    ),
    OpKind(
        "quantize",
        _quantize,
        _numpy_quantize,
        inputs=3,
        attrs={"axis": -1, "out_dtype": "int8"},
        read_attrs=("ties",),
        relay=form("qnn.quantize", _quantize_attrs("away")),
        relax=form("quantize", _quantize_attrs("even")),
        fuses="elemwise",
        is_folded=False,
        takes="x scale zero_point",
        numbers={1: "float32", 2: "int32"},
        passed={1: _ONES, 2: ()},
        doc=(
            "round(x / scale) + zero_point, limited to the range of out_dtype; both are one "
            "number, or a vector along one axis of x. Halves go to even on Relax, away from zero "
            "on Relay."
        ),
    ),
)  # fmt: skip
