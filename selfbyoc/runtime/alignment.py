"""Arrays as memory: those that TVM's kernels can read where they lie, and copies."""

from __future__ import annotations

import numpy as np

ALIGNED = 64  # bytes: what TVM's allocations promise, and LLVM's aligned loads take for granted
_SMALL = 1 << 14  # bytes that are copied in less than the microsecond which sharing them takes


def lies_well(array: np.ndarray) -> bool:
    """Whether an array is worth sharing and can be: NumPy hands out no read-only ones, and TVM
    0.17's DLPack has no bool.
    """
    return (
        array.nbytes >= _SMALL
        and array.ctypes.data % ALIGNED == 0
        and array.dtype.kind in "iuf"
        and array.flags.c_contiguous
        and array.flags.writeable
    )


def read_only(copy: np.ndarray) -> np.ndarray:
    """A copy in which nobody can write what was meant for the original."""
    copy.flags.writeable = False
    return copy


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that is contiguous and begins at a multiple of 64 bytes."""
    memory = np.empty(array.nbytes + ALIGNED, np.uint8)
    start = -memory.ctypes.data % ALIGNED
    copy = np.ndarray(array.shape, array.dtype, memory, start)
    np.copyto(copy, array)
    return copy


def is_plain(dtype: np.dtype) -> bool:
    """Whether it is NumPy's own: ml_dtypes has more of them, one of which says it is a float."""
    return dtype.isbuiltin == 1 and dtype.kind in "biufc"
