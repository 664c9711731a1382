"""Levels before anything is matched: what quantisers write, as kernels read it.

- A zero point that is the same for every channel is one number.
- Each reader of dequantised levels dequantises them itself: one that computes with a kernel is part
  of it, and no float image is stored for two. Elementwise readers share theirs: x * sigmoid(x) is
  one op of one x.
- What only moves or compares elements works on the levels: max_pool(dequantize(x)) is
  dequantize(max_pool(x)), quantize(max_pool(x)) is max_pool(quantize(x)), and of what is joined
  each part is quantised. quantize(dequantize(x)) of one scale and zero point is x.
- A bias of 32 bits is one of floats; so is a weight of 16.
- A zero point that may be no level, which a convolution's padding could not hold, is subtracted by
  an op.
- A weight of bytes that counts from another place than the middle of its dtype counts from 0: in
  bytes where it fits, else as int16 of -255 to 255, whose products are of two levels at a time.
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
# Of which functions of one value are written: silu, hard-swish, gelu, lrn.
_ELEMENTWISE = frozenset(
    {"clip", "divide", "erf", "maximum", "minimum", "multiply", "power", "sigmoid", "sqrt",
     "square", "subtract", "tanh"}
)  # fmt: skip


def shares(name: str, beside: Sequence[bool]) -> bool:
    """Whether a reader, by its op's name, computes with the value that other such readers have;
    `beside` says of each of its inputs whether it is a constant.
    """
    kind = name.removeprefix("relax.").removeprefix("nn.")
    return kind in _ELEMENTWISE or (kind == "add" and any(beside))


def pads(name: str) -> bool:
    """Whether an op, by its name, has padding that holds the zero point."""
    return name.removeprefix("relax.").startswith("nn.conv")


def made_of(levels: Any, factors: Sequence[Any]) -> Any | None:
    """What tells dequantised levels from others, however often they are written; None where a scale
    or a zero point is no constant.
    """
    if any(factor is None for factor in factors):
        return None
    return levels, *((str(f.dtype), f.shape, f.tobytes()) for f in factors)


def one_number(array: Any) -> Any | None:
    """Of an array of equal elements one of them; None where they differ, or it is one already."""
    if array.size < 2 or (array != array.flat[0]).any():
        return None
    return array.reshape(-1)[0]


def is_middle(zero: Any, dtype: str) -> bool:
    """Whether a weight counts from the middle of its dtype in all channels, as the kernels' do."""
    return zero is not None and zero.size > 0 and bool((zero == (dtype == "uint8") * 128).all())


def is_level(zero: Any, of: str, dtype: str) -> bool:
    """Whether levels of a dtype hold a zero point: its array, None for data, of a dtype `of`."""
    if dtype not in BYTES:
        return True
    if zero is None:
        return of == dtype
    limits = np.iinfo(dtype)
    return bool((zero >= limits.min).all() and (zero <= limits.max).all())


def around_zero(levels: Any, zero: Any, axis: int) -> Any | None:
    """A weight less its zero points, in bytes where they hold it, else in int16; None for one of
    other levels than bytes, and where not all is known.
    """
    if zero is None or levels is None or levels.ndim < 2 or str(levels.dtype) not in BYTES:
        return None
    moved = levels.astype(np.int16) - _along(zero.astype(np.int16), axis, levels.ndim)
    return moved.astype(np.int8) if _is_byte(moved) else moved


def _is_byte(levels: Any) -> bool:
    return bool(levels.size) and levels.min() >= -128 and levels.max() <= 127


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
