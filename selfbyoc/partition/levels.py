"""Levels before anything is matched: what quantisers write, as kernels read it.

- A zero point that is the same for every channel is one number.
- Each reader of dequantised levels dequantises them itself: one that computes with a kernel is part
  of it, and no float image is stored for two.
- What only moves or compares elements works on the levels: max_pool(dequantize(x)) is
  dequantize(max_pool(x)), and quantize(dequantize(x)) of one scale and zero point is x.
- A bias of 32 bits is one of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BYTES = ("int8", "uint8")
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


def alike(pairs: Any) -> bool:
    """Whether scales and zero points, arrays in pairs, are equal, each one number."""
    return all(
        a is not None and b is not None and a.size == b.size == 1 and np.array_equal(a.flat, b.flat)
        for a, b in pairs
    )


def dequantised(arrays: Sequence[Any], axis: int) -> Any:
    """Constant levels as float32; of (levels, scale, zero point)."""
    levels, scale, zero = arrays
    column = [-1 if n == axis % max(1, levels.ndim) else 1 for n in range(levels.ndim)]
    scale, zero = (f.reshape(column) if f.size > 1 else f.reshape(()) for f in (scale, zero))
    return (levels.astype(np.int64) - zero).astype(np.float32) * scale.astype(np.float32)
