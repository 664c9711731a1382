"""Memory around what a kernel is given, which shows whether it writes there."""

from __future__ import annotations

import numpy as np

GUARD = 128  # bytes before and after each array: TVM wants multiples of 64, POCL of 128
POISON = 0xFF  # as floating point: NaN


class Overrun(Exception):
    """The kernel wrote where it must not."""


class Guarded:
    """An array full of one byte (255: of NaN; of -1, if integers) between two guards."""

    def __init__(self, shape: tuple[int, ...], dtype: str, poison: int) -> None:
        self.poison = poison
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        whole = np.full(size + 3 * GUARD, poison, "uint8")
        start = GUARD + -whole.ctypes.data % GUARD
        self.before, self.after = whole[:start], whole[start + size :]
        self.array = whole[start : start + size].view(dtype).reshape(shape)

    @property
    def overrun(self) -> bool:
        """Whether a guard was written to."""
        return bool((self.before != self.poison).any() or (self.after != self.poison).any())
