"""Ops of quantised models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tvm import te, tir
from ..errors import UnsupportedOp
from ..graph import OpCall
from .attrs import must, only
from .fixed_point import fixed_point
from .kind import Array, OpKind, form

if TYPE_CHECKING:
    from ..language.types import Tensor


def _ratio(attrs: Mapping[str, Any]) -> float:
    """Of the scales as a model has them: in float32."""
    return float(np.float32(attrs["input_scale"])) / float(np.float32(attrs["output_scale"]))


def _requantize(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    """Fixed-point rescaling, bit for bit as Relay's qnn.requantize with rounding UPWARD."""
    (x,) = ins
    a = call.attrs
    if "input_scale" not in a:
        raise UnsupportedOp(f"{call.name}: scales that differ by channel have no compute here")
    dtype = call.outputs[0].dtype
    low, high = tir.min_value(dtype), tir.max_value(dtype)
    multiplier, shift = fixed_point(_ratio(a))

    def element(*i: Any) -> Any:
        def wide(value: int) -> Any:
            return tir.const(value, "int64")

        product = (x(*i).astype("int64") - wide(a["input_zero_point"])) * wide(multiplier)
        moved = product + wide(1 << (shift - 1))
        value = (moved >> wide(shift)) + wide(a["output_zero_point"])
        return tir.Max(tir.Min(value, high.astype("int64")), low.astype("int64")).astype(dtype)

    return te.compute(x.shape, element, name=call.name)


def _numpy_requantize(ins: Sequence[Array], call: OpCall) -> Array:
    a, dtype = call.attrs, np.dtype(call.outputs[0].dtype)
    multiplier, shift = fixed_point(_ratio(a))
    wide = (ins[0].astype(np.int64) - a["input_zero_point"]) * multiplier + (1 << (shift - 1))
    value = (wide >> shift) + a["output_zero_point"]
    return np.clip(value, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


KINDS = (
    OpKind(
        "requantize",
        _requantize,
        _numpy_requantize,
        read_attrs=(
            "out_dtype", "input_scale", "input_zero_point", "output_scale",
            "output_zero_point",
        ),
        relay=form(
            "qnn.requantize",
            only("out_dtype"),
            idle=("axis",),  # of scales by channel, which are not read
            # Halves go up, in fixed point of 64 bits.
            needs={"rounding": must("None", "UPWARD"), "compute_dtype": must("None", "int64")},
        ),
        fuses="elemwise",
        takes="x",
        doc=(
            "round((x - input_zero_point) * input_scale / output_scale) + output_zero_point, "
            "halves up, limited to the range of out_dtype; bit for bit as Relay's with rounding "
            "UPWARD."
        ),
    ),
)  # fmt: skip
