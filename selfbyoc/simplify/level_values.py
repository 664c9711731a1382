"""Levels, scales and zero points as arrays: what can be said of them before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..tvm.types import Expr

BYTES = ("int8", "uint8")


def made_of(levels: Expr, factors: Sequence[Any]) -> tuple[object, ...] | None:
    """What tells dequantised levels from others, however often they are written; None where a scale
    or a zero point is no constant.
    """
    if any(factor is None for factor in factors):
        return None
    return levels, *((str(f.dtype), f.shape, f.tobytes()) for f in factors)


def one_number(array: np.ndarray) -> np.generic | None:
    """Of an array of equal elements one of them; None where they differ, or it is one already."""
    if array.size < 2 or (array != array.flat[0]).any():
        return None
    return array.reshape(-1)[0]


def is_middle(zero: np.ndarray | None, dtype: str) -> bool:
    """Whether a weight counts from the middle of its dtype in all channels, as the kernels' do."""
    return zero is not None and zero.size > 0 and bool((zero == (dtype == "uint8") * 128).all())


def is_level(zero: np.ndarray | None, of: str, dtype: str) -> bool:
    """Whether levels of a dtype hold a zero point: its array, None for data, of a dtype `of`."""
    if dtype not in BYTES:
        return True
    if zero is None:
        return of == dtype
    limits = np.iinfo(dtype)
    return bool((zero >= limits.min).all() and (zero <= limits.max).all())


def around_zero(levels: np.ndarray | None, zero: np.ndarray | None, axis: int) -> np.ndarray | None:
    """A weight less its zero points, in bytes where they hold it, else in int16; None for one of
    other levels than bytes, and where not all is known.
    """
    if zero is None or levels is None or levels.ndim < 2 or str(levels.dtype) not in BYTES:
        return None
    moved = levels.astype(np.int16) - _along(zero.astype(np.int16), axis, levels.ndim)
    return moved.astype(np.int8) if _is_byte(moved) else moved


def _is_byte(levels: np.ndarray) -> bool:
    return bool(levels.size) and levels.min() >= -128 and levels.max() <= 127


def stays(levels: np.ndarray) -> bool:
    """Whether a kernel multiplies a constant as it is: bytes, and what is of two bytes less a zero
    point.
    """
    wide = levels.dtype == np.int16 and levels.ndim > 1 and np.abs(levels).max(initial=0) <= 255
    return str(levels.dtype) in BYTES or bool(wide)


def _along(factor: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """One number, or those of an axis, beside all others."""
    column = [-1 if n == axis % max(1, ndim) else 1 for n in range(ndim)]
    return factor.reshape(column) if factor.size > 1 else factor.reshape(())


def alike(pairs: Iterable[tuple[np.ndarray | None, np.ndarray | None]]) -> bool:
    """Whether scales and zero points, arrays in pairs, are equal, each one number."""
    return all(
        a is not None and b is not None and a.size == b.size == 1 and np.array_equal(a.flat, b.flat)
        for a, b in pairs
    )


def dequantised(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Constant levels as float32; of (levels, scale, zero point)."""
    levels, *factors = arrays
    scale, zero = (_along(factor, axis, levels.ndim) for factor in factors)
    return (levels.astype(np.int64) - zero).astype(np.float32) * scale.astype(np.float32)
