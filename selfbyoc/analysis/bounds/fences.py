"""Arrays between pages that nobody may touch: an access outside ends the process."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ...tvm import GENERATION, tvm
from ...tvm.types import NDArray

PAGE, NOTHING = mmap.PAGESIZE, 0


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def fenced(shape: tuple[int, ...], dtype: str, at_end: bool) -> np.ndarray:
    """An array whose last byte (or whose first) is a neighbour of a page without access. It is
    never given back: the process is short.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    inside = -(-size // PAGE) * PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    begin = _libc().mmap(
        None, inside + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, flags, (1 << 64) - 1, 0
    )
    for fence in (begin, begin + PAGE + inside):
        if begin in (None, (1 << 64) - 1) or _libc().mprotect(fence, PAGE, NOTHING) != 0:
            raise MemoryError(f"no fenced memory of {size} bytes: errno {ctypes.get_errno()}")
    start = begin + PAGE + (inside - size if at_end else 0)
    memory: Any = (ctypes.c_byte * size).from_address(start)
    return np.frombuffer(memory, dtype).reshape(shape)


def as_tensor(array: np.ndarray) -> NDArray:
    """A TVM tensor in the array's own memory."""
    if GENERATION == "relax":
        return array  # 0.27 takes it as it lies; its from_dlpack asks for 64 bytes
    described, _ = tvm.nd.numpyasarray(array)
    return tvm.nd.NDArray(ctypes.pointer(described), True)
