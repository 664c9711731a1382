"""Levels before anything is matched: what quantisers write, as kernels read it.

- A zero point that is the same for every channel is one number.
- Each reader of dequantised levels dequantises them itself: one that computes with a kernel is part
  of it, and no float image is stored for two.
- What only moves or compares elements works on the levels: max_pool(dequantize(x)) is
  dequantize(max_pool(x)), and quantize(dequantize(x)) of one scale and zero point is x.
- A bias of 32 bits is one of floats; so is a weight of 16.
- A weight of bytes that counts from another place than the middle of its dtype is one of int16, of
  -255 to 255, that counts from 0: its products are made of two levels at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BYTES = ("int8", "uint8")
DEQUANTIZES = ("dequantize", "dequantize_groups")  # what makes floats of a weight's levels
# Ops that give elements of their first input, by the names of either TVM.
MOVES = frozenset(
    {"expand_dims", "flatten", "layout_transform", "nn.batch_flatten", "nn.max_pool2d",
     "permute_dims", "reshape", "squeeze", "strided_slice", "transpose"}
)  # fmt: skip


def one_number(array: Any) -> Any | None:
    """Of an array of equal elements one of them; None where they differ, or it is one already."""
    if array.size < 2 or (array != array.flat[0]).any():
        return None
    return array.reshape(-1)[0]


def is_middle(zero: Any, dtype: str) -> bool:
    """Whether a weight counts from the middle of its dtype, as the kernels' weights do."""
    return zero is not None and zero.size == 1 and int(zero.flat[0]) == (dtype == "uint8") * 128


def around_zero(levels: Any, zero: Any, axis: int) -> Any | None:
    """A weight less its zero points, in int16; None for one of other levels than bytes, and where
    not all is known.
    """
    if zero is None or levels is None or levels.ndim < 2 or str(levels.dtype) not in BYTES:
        return None
    return levels.astype(np.int16) - _along(zero.astype(np.int16), axis, levels.ndim)


def stays(levels: Any) -> bool:
    """Whether a kernel multiplies a constant as it is: bytes, and what is of two bytes less a zero
    point.
    """
    wide = levels.dtype == np.int16 and levels.ndim > 1 and np.abs(levels).max(initial=0) <= 255
    return str(levels.dtype) in BYTES or bool(wide)


def _along(factor: Any, axis: int, ndim: int) -> Any:
    """One number, or those of an axis, beside all others."""
    column = [-1 if n == axis % max(1, ndim) else 1 for n in range(ndim)]
    return factor.reshape(column) if factor.size > 1 else factor.reshape(())


def alike(pairs: Any) -> bool:
    """Whether scales and zero points, arrays in pairs, are equal, each one number."""
    return all(
        a is not None and b is not None and a.size == b.size == 1 and np.array_equal(a.flat, b.flat)
        for a, b in pairs
    )


def dequantised(arrays: Sequence[Any], axis: int) -> Any:
    """Constant levels as float32; of (levels, scale, zero point)."""
    levels, *factors = arrays
    scale, zero = (_along(factor, axis, levels.ndim) for factor in factors)
    return (levels.astype(np.int64) - zero).astype(np.float32) * scale.astype(np.float32)
