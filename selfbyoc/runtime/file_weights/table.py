"""The weights of a file, each once, and the calls that are given some of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

GIVEN = -1  # an argument that the caller gives
ALIGNED = 64  # bytes: what TVM's kernels take for granted


@dataclass(frozen=True)
class Weight:
    """Values of a kernel's constant argument. `dtype` is DLPack's: code, bits, lanes."""

    shape: tuple[int, ...]
    dtype: tuple[int, int, int]
    values: np.ndarray = field(repr=False, compare=False)


_CODES = {"i": 0, "u": 1, "f": 2}  # DLPack's, by NumPy's kind


def weight_of(values: np.ndarray) -> Weight:
    """Numbers as a weight."""
    dtype = values.dtype
    return Weight(values.shape, (_CODES[dtype.kind], 8 * dtype.itemsize, 1), values)


def up(size: int) -> int:
    """To where the next one may begin."""
    return -(-size // ALIGNED) * ALIGNED


@dataclass(frozen=True)
class Stub:
    """A function that calls a kernel. `arguments`: GIVEN, or which weight it is, in order."""

    name: str
    kernel: str
    arguments: tuple[int, ...]


@dataclass
class Table:
    """Weights in order, and stubs by what they do."""

    weights: list[Weight] = field(default_factory=list)
    stubs: dict[tuple[str, tuple[int, ...]], Stub] = field(default_factory=dict)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def place(self, weight: Weight) -> int:
        """Which one it is; one with the same bytes and type serves."""
        digest = hashlib.blake2b(np.ascontiguousarray(weight.values).data.cast("B")).digest()
        key = (weight.shape, weight.dtype, digest)
        if key not in self._known:
            self._known[key] = len(self.weights)
            self.weights.append(weight)
        return self._known[key]

    def stub(self, kernel: str, arguments: Sequence[int]) -> Stub:
        """The stub that calls this kernel so."""
        key = kernel, tuple(arguments)
        if key not in self.stubs:
            self.stubs[key] = Stub(f"selfbyoc_{len(self.stubs)}_{kernel}", *key)
        return self.stubs[key]
