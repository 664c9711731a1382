"""Weights of few bits, in groups that have a scale and a zero point each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import OpCall
from ..tvm import te, tir
from .attrs import Raw, like
from .kind import OWN, Array, OpKind, Typed, form

if TYPE_CHECKING:
    from ..tvm.types import Tensor

BITS = (2, 4, 8)
FLOATS = ("float32", "float16")


def _types(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    (levels, dtype), (scale, kind), (zero, point) = ins
    if len(levels) != 2 or dtype != "uint8" or kind not in FLOATS or kind != point:
        text = "expected levels [units, depth] of uint8, scales and zero points of one float dtype"
        raise ValueError(f"{text}, found {len(levels)} axes of {dtype}, {kind}, {point}")
    if attrs["bits"] not in BITS or attrs["group"] < 1:
        text = f"expected bits of {', '.join(map(str, BITS))} and a group of 1 or more"
        raise ValueError(f"{text}, found {attrs['bits']} and {attrs['group']}")
    units, depth = map(int, levels)
    wanted = [units, -(-depth // attrs["group"])]
    if [list(map(int, scale)), list(map(int, zero))] != [wanted, wanted]:
        text = f"expected scales and zero points of {wanted}"
        raise ValueError(f"{text}, found {list(scale)} and {list(zero)}")
    return [(levels, "float32")]


def _compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    levels, scale, zero = ins
    group, most = call.attrs["group"], (1 << call.attrs["bits"]) - 1

    def element(unit: tir.PrimExpr, k: tir.PrimExpr) -> tir.PrimExpr:
        at = unit, tir.floordiv(k, group)
        level = (levels(unit, k).astype("int32") & most).astype("float32")
        return (level - zero(*at).astype("float32")) * scale(*at).astype("float32")

    return te.compute(levels.shape, element, name=call.name)


def _numpy(ins: Sequence[Array], call: OpCall) -> Array:
    return dequantised_groups(ins, call.attrs["bits"], call.attrs["group"])


def dequantised_groups(ins: Sequence[Array], bits: int, group: int) -> Array:
    """What they stand for, in float64."""
    levels, *factors = ins
    places = np.arange(levels.shape[1]) // group
    scale, zero = (factor.astype(np.float64)[:, places] for factor in factors)
    found: Array = ((levels & ((1 << bits) - 1)) - zero) * scale
    return found


_ATTRS = {"bits": 4, "group": 32}
KINDS = (
    OpKind(
        "dequantize_groups", _compute, _numpy, inputs=3, attrs=_ATTRS, types=_types,
        relay=form(OWN + "dequantize_groups", like(_ATTRS)),
        relax=form(OWN + "dequantize_groups", like(_ATTRS)),
        fuses="injective", is_folded=False,
        takes="levels scale zero_point",
        doc="(levels - zero_point) * scale of a weight [units, depth], float32. levels are uint8, "
        "of which the lowest bits count; scale and zero_point, floats, are [units, depth / group]: "
        "one for each group along the depth, of which the last may be short.",
    ),
)  # fmt: skip
