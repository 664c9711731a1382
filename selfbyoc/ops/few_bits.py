"""Weights of few bits, in groups that have a scale and a zero point each, and what they are
multiplied by as levels of 8 bits, in groups too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import OpCall
from ..tvm import te, tir
from ..tvm.rounding import nearbyint
from .attrs import Raw, like
from .kind import OWN, Array, OpKind, Typed, broadcast, form, in_both

if TYPE_CHECKING:
    from ..tvm.types import PrimExpr, Tensor

BITS = (2, 4, 8)
FLOATS = ("float32", "float16")
ONE_FOR_ALL = [1, 1]  # the shape of a zero point that all groups share


def _types(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    (levels, dtype), (scale, kind), (zero, point) = ins
    if len(levels) != 2 or dtype != "uint8" or kind not in FLOATS or point not in (kind, "uint8"):
        text = "expected levels [units, depth] of uint8, scales of a float dtype, zero points of it"
        text += " or of uint8"
        raise ValueError(f"{text}, found {len(levels)} axes of {dtype}, {kind}, {point}")
    if attrs["bits"] not in BITS or attrs["group"] < 1:
        text = f"expected bits of {', '.join(map(str, BITS))} and a group of 1 or more"
        raise ValueError(f"{text}, found {attrs['bits']} and {attrs['group']}")
    units, depth = map(int, levels)
    wanted = [units, -(-depth // attrs["group"])]
    scales, points = list(map(int, scale)), list(map(int, zero))
    if scales != wanted or points not in (wanted, ONE_FOR_ALL):
        text = f"expected scales and zero points of {wanted}, or one zero point, [1, 1]"
        raise ValueError(f"{text}, found {list(scale)} and {list(zero)}")
    return [(levels, "float32")]


def _compute(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    levels, scale, zero = ins
    group, most = call.attrs["group"], (1 << call.attrs["bits"]) - 1

    def element(unit: tir.PrimExpr, k: tir.PrimExpr) -> tir.PrimExpr:
        at = unit, tir.floordiv(k, group)
        level = (levels(unit, k).astype("int32") & most).astype("float32")
        return (level - broadcast(zero, at).astype("float32")) * scale(*at).astype("float32")

    return te.compute(levels.shape, element, name=call.name)


def _numpy(ins: Sequence[Array], call: OpCall) -> Array:
    return dequantised_groups(ins, call.attrs["bits"], call.attrs["group"])


def dequantised_groups(ins: Sequence[Array], bits: int, group: int) -> Array:
    """What they stand for, in float64."""
    levels, *factors = ins
    places = np.arange(levels.shape[1]) // group
    scale, zero = (f.astype(np.float64)[:, places if f.size > 1 else [0]] for f in factors)
    found: Array = ((levels & ((1 << bits) - 1)) - zero) * scale
    return found


def _types_of_rows(ins: Sequence[Typed], attrs: Raw) -> list[Typed]:
    ((shape, dtype),) = ins
    if dtype != "float32" or not shape or attrs["group"] < 1:
        text = "expected float32 with an axis or more and a group of 1 or more"
        raise ValueError(f"{text}, found {len(shape)} axes of {dtype} and {attrs['group']}")
    return [(shape, dtype)]


def levels_per_unit(peak: PrimExpr) -> PrimExpr:
    """What makes levels of the elements of a group whose largest magnitude is `peak`."""
    none = tir.const(0, "float32")
    return tir.Select(peak > none, tir.const(float(MOST), "float32") / peak, none)


def unit_of_level(peak: PrimExpr) -> PrimExpr:
    """What a level of such a group stands for."""
    return peak / tir.const(float(MOST), "float32")


def _compute_rows(ins: Sequence[Tensor], call: OpCall) -> Tensor:
    (x,) = ins
    *lead, depth = x.shape
    group = call.attrs["group"]
    at = te.reduce_axis((0, group), name="at")

    def magnitude(*i: PrimExpr) -> PrimExpr:
        return te.abs(x(*i[:-1], tir.Min(i[-1] * group + at, depth - 1)))

    shape = (*lead, tir.floordiv(depth + group - 1, group))
    peak = te.compute(shape, lambda *i: te.max(magnitude(*i), axis=at), name=f"{call.name}_peak")

    def element(*i: PrimExpr) -> PrimExpr:
        most = peak(*i[:-1], tir.floordiv(i[-1], group))
        return nearbyint(x(*i) * levels_per_unit(most)) * unit_of_level(most)

    return te.compute(x.shape, element, name=call.name)


def _numpy_rows(ins: Sequence[Array], call: OpCall) -> Array:
    levels, steps = levels_of_rows(ins[0], call.attrs["group"])
    return levels * steps.astype(np.float64)


def levels_of_rows(x: Array, group: int) -> tuple[Array, Array]:
    """-> levels, and for each element what one stands for, float32; as the op rounds."""
    depth = x.shape[-1]
    ends = [(0, 0)] * (x.ndim - 1) + [(0, -depth % group)]
    groups = np.pad(x.astype(np.float32), ends).reshape(*x.shape[:-1], -1, group)
    peak = np.abs(groups).max(axis=-1, keepdims=True)
    most = np.float32(MOST)
    inverse = np.divide(most, peak, out=np.zeros_like(peak), where=peak > 0)
    levels, steps = np.rint(groups * inverse), np.broadcast_to(peak / most, groups.shape)
    flat = (*x.shape[:-1], groups.shape[-2] * group)
    return levels.reshape(flat)[..., :depth], steps.reshape(flat)[..., :depth]


MOST = 127  # the level of a group's largest magnitude
_ATTRS = {"bits": 4, "group": 32}
_ATTRS_OF_ROWS = {"group": 32}
KINDS = (
    OpKind(
        "dequantize_groups", _compute, _numpy, inputs=3, attrs=_ATTRS, types=_types,
        relay=form(OWN + "dequantize_groups", like(_ATTRS)),
        relax=form(OWN + "dequantize_groups", like(_ATTRS)),
        fuses="injective", is_folded=False,
        takes="levels scale zero_point",
        doc="(levels - zero_point) * scale of a weight [units, depth], float32. levels are uint8, "
        "of which the lowest bits count; scale, floats, and zero_point, floats or uint8, are "
        "[units, depth / group]: one for each group along the depth, of which the last may be "
        "short. A zero_point [1, 1] is that of all groups.",
    ),
    OpKind(
        "fake_quantize_groups", _compute_rows, _numpy_rows, attrs=_ATTRS_OF_ROWS,
        types=_types_of_rows,
        **in_both(OWN + "fake_quantize_groups", like(_ATTRS_OF_ROWS)),
        fuses=("opaque", "out_elemwise_fusable"),
        takes="x",
        doc="x, rounded to levels of 8 bits in groups of its last axis: a group's largest number "
        "is level 127, or -127, others are its nearest multiple of a 127th, halves to even. What "
        "weights of few bits are multiplied by where a model allows it (`accuracy_level` 4 of "
        "MatMulNBits).",
    ),
)  # fmt: skip
