"""Weights of dense layers as levels of few bits in groups: `build(mod, weights="int4")`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.generation import rewritten
from ..ir.rewriting import Editor, Made, are_same
from ..tvm.types import Expr, IRModule
from .weights import out_dtype, weight_by_units

Array = np.ndarray
NAMES = {"int4": 4, "int8": 8}
LEAST = 1024  # elements; of less there is nothing to save


def takes(weight: Array) -> bool:
    """Whether a weight [units, depth] is held so."""
    return (
        weight.ndim == 2
        and weight.dtype == np.float32
        and weight.size >= LEAST
        and bool(np.isfinite(weight).all())
    )


def in_groups(weight: Array, bits: int, group: int) -> tuple[Array, Array, Array]:
    """-> levels, scales and zero points: of each group from its least to its greatest element, and
    0, which stays what it is.
    """
    units, depth = weight.shape
    count = -(-depth // group)
    padded = np.pad(weight, ((0, 0), (0, count * group - depth)))
    groups = padded.reshape(units, count, group).astype(np.float64)
    low, high = np.minimum(groups.min(axis=2), 0), np.maximum(groups.max(axis=2), 0)
    most = (1 << bits) - 1
    scale = _half(np.where(high > low, (high - low) / most, 1))
    wide = scale.astype(np.float64)
    zero = np.clip(np.rint(-low / wide), 0, most)
    levels = np.clip(np.rint(groups / wide[..., None]) + zero[..., None], 0, most)
    flat: Any = levels.reshape(units, -1)[:, :depth]
    return np.ascontiguousarray(flat.astype(np.uint8)), scale, zero.astype(np.uint8)


def _half(scale: Array) -> Array:
    """Scales as float16, which is a third of what 32 weights of 4 bits are with two of float32; as
    float32 where one is too large or loses digits.
    """
    limits = np.finfo(np.float16)
    fits = bool(((limits.tiny <= scale) & (scale <= limits.max)).all())
    return scale.astype(np.float16 if fits else np.float32)


def with_few_bits(mod: IRModule, bits: int, group: int, activations: str) -> IRModule:
    """The prepared module; constant weights of its dense layers are levels, and so is what they are
    multiplied by, where activations are "int8".
    """

    def held(made: Made, to: Editor) -> Expr | None:
        weight = weight_by_units(made, to)
        if weight is None or not takes(weight) or len(to.shape(made.args[0]) or ()) < 2:
            return None
        levels = map(to.constant, in_groups(weight, bits, group))
        floats = to.emit("dequantize_groups", *levels, bits=bits, group=group)
        x = made.args[0]
        merging = _merged_rows(x, to)
        if activations == "int8":
            x = to.emit(
                "fake_quantize_groups", x if merging is None else merging.args[0], group=group
            )
            x = x if merging is None else to.again(merging, [x, *merging.args[1:]])
        return to.emit("dense", x, floats, out_dtype=out_dtype(made))

    return rewritten(mod, held)


def _merged_rows(x: Expr, to: Editor) -> Made | None:
    """The reshape that merges rows, which a dense layer of any number of axes does without: nothing
    stands between both.
    """
    made, shape = to.made(x), to.shape(x)
    if made is None or made.kind != "reshape" or not shape:
        return None
    before = to.shape(made.args[0])
    return made if before and are_same(before[-1:], shape[-1:]) else None
