"""The weights of a file, each once, and the calls that are given some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

GIVEN = -1  # an argument that the caller gives
_FEW = 64  # elements
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


def _some(values: np.ndarray) -> bytes:
    """A few of the elements, in which most weights differ: hashing all takes longer than reading
    those again that agree in them.
    """
    return values.reshape(-1)[:: max(1, values.size // _FEW)].tobytes()


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two of a shape and type have the same bytes."""
    if a.ctypes.data == b.ctypes.data and a.strides == b.strides:
        return True
    first, second = (np.ascontiguousarray(e).reshape(-1).view(np.uint8) for e in (a, b))
    return np.array_equal(first, second)


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
    _known: dict[tuple[object, ...], list[int]] = field(default_factory=dict)

    def place(self, weight: Weight) -> int:
        """Which one it is; one with the same bytes and type serves."""
        key = (weight.shape, weight.dtype, _some(weight.values))
        alike = self._known.setdefault(key, [])
        found = (n for n in alike if _same(self.weights[n].values, weight.values))
        if (place := next(found, None)) is not None:
            return place
        alike.append(len(self.weights))
        self.weights.append(weight)
        return alike[-1]

    def stub(self, kernel: str, arguments: Sequence[int]) -> Stub:
        """The stub that calls this kernel so."""
        key = kernel, tuple(arguments)
        if key not in self.stubs:
            self.stubs[key] = Stub(f"selfbyoc_{len(self.stubs)}_{kernel}", *key)
        return self.stubs[key]
