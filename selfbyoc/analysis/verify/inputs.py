"""What verification feeds a kernel: inputs of several kinds, each of which finds other errors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import numpy as np

from ...graph import OpGraph, Value

Array = np.ndarray

# kind -> what it is for; in the order in which they run.
KINDS = {
    "nan": "NaN everywhere: must not crash, and leaves NaN in scratch memory for the next run",
    "random": "standard normal, both signs; integers of 8 bits over their whole range",
    "zeros": "zeros: what padding and biases alone make",
    "borders": "large values in the first and last rows of each axis, zero inside: padding, tails",
    "negative": "negative values only: a padding of zeros wins a maximum",
    "denormals": "the smallest numbers: must not be flushed to zero",
    "large": "large magnitudes, as far as the result stays finite",
    "extremes": "the least and the largest integers",
}
_FLOAT = ("nan", "random", "zeros", "borders", "negative", "denormals", "large")
_INTEGER = ("random", "zeros", "borders", "extremes")
# A `large` that overflows the reference is tried again smaller; squares and their sums must fit.
LARGE = (1e9, 1e6, 1e3, 30.0)
# Op -> the input that must be positive for the result to be a number.
_POSITIVE = {"batch_norm": 4, "sqrt": 0, "rsqrt": 0, "log": 0, "divide": 1, "power": 0}


def data_positions(graph: OpGraph, constants: Mapping[int, Array]) -> list[int]:
    """The inputs that take a kind: the first operand of the first op that has one which is no
    constant, and those of the same type.

    The others (weights that are no constants) are random always: two zeros, or two denormals, in
    one product would test nothing.
    """
    free = [i for i, v in enumerate(graph.inputs) if i not in constants and v.scalar is None]
    if not free:
        return []
    first = (call.inputs[0] for call in graph.ops if call.sources and call.inputs)
    position = {graph.inputs[i]: i for i in free}
    data = next((position[value] for value in first if value in position), free[0])
    return [i for i in free if graph.inputs[i].type == graph.inputs[data].type]


def kinds_for(graph: OpGraph, constants: Mapping[int, Array]) -> list[str]:
    """The kinds that say something about these inputs."""
    positions = data_positions(graph, constants)
    if not positions:
        return ["random"]
    return list(_FLOAT if is_float(graph.inputs[positions[0]]) else _INTEGER)


def is_float(value: Value) -> bool:
    """Whether a value is of a floating-point dtype."""
    return value.dtype.startswith(("float", "bfloat"))


def arrays(
    graph: OpGraph, constants: Mapping[int, Array], kind: str, seed: int = 0, size: float = LARGE[0]
) -> list[Array]:
    """One array for each input of the graph. The same seed gives the same arrays."""
    data, positive = set(data_positions(graph, constants)), _positive(graph)
    found = []
    for position, value in enumerate(graph.inputs):
        rng = np.random.default_rng([seed, position, zlib.crc32(kind.encode())])
        if position in constants:
            found.append(constants[position])
        elif value.scalar is not None:
            found.append(np.full(value.shape, value.scalar, value.dtype))
        else:
            made = _make(rng, value, kind if position in data else "random", size)
            made = _in_seven_bits(made) if value.seven_bits else made
            found.append(_above_zero(made) if value in positive else made)
    return found


def _make(rng: np.random.Generator, value: Value, kind: str, size: float) -> Array:
    maker = _MAKERS[kind] if is_float(value) else _INTEGER_MAKERS.get(kind, _integers)
    return maker(rng, value, size).astype(value.dtype)


def _in_seven_bits(array: Array) -> Array:
    """Bytes within 64 of their middle, by half of each one's distance."""
    middle = 128 if array.dtype == np.uint8 else 0
    return (middle + (array.astype(int) - middle) // 2).astype(array.dtype)


def _above_zero(array: Array) -> Array:
    return (np.abs(array) + np.asarray(0.1, array.dtype)).astype(array.dtype)


def _positive(graph: OpGraph) -> set[Value]:
    """The inputs that must be positive, seen through reshapes of arguments."""
    found: set[Value] = set()
    for call in graph.ops:
        if call.kind not in _POSITIVE:
            continue
        value = call.inputs[_POSITIVE[call.kind]]
        while (producer := graph.producer(value)) is not None and not producer.sources:
            value = producer.inputs[0]
        found.add(value)
    return found


def _normal(rng: np.random.Generator, value: Value, size: float) -> Array:
    return rng.standard_normal(value.shape)


def _integers(rng: np.random.Generator, value: Value, size: float) -> Array:
    info = np.iinfo(value.dtype)
    low, high = (info.min, info.max) if info.bits == 8 else (max(info.min, -1000), 1000)
    return rng.integers(low, high, value.shape, endpoint=True)


def _zeros(rng: np.random.Generator, value: Value, size: float) -> Array:
    return np.zeros(value.shape)


def _extremes(rng: np.random.Generator, value: Value, size: float) -> Array:
    info = np.iinfo(value.dtype)
    # Wider integers hold sums: at their own extremes any sum of two wraps.
    low, high = (info.min, info.max) if info.bits == 8 else (max(info.min, -(1 << 15)), 1 << 15)
    return rng.choice([low, high], value.shape)


def _at_borders(inside: Array, border: Array) -> Array:
    """`border` where an index of an axis is the first or the last, `inside` elsewhere."""
    mask = np.zeros(inside.shape, bool)
    for axis, extent in enumerate(inside.shape):
        if extent > 2:
            np.moveaxis(mask, axis, 0)[[0, -1]] = True
    return np.where(mask, border, inside)


def _borders(rng: np.random.Generator, value: Value, size: float) -> Array:
    made = rng.standard_normal(value.shape)
    return _at_borders(np.zeros(value.shape), np.copysign(10 + np.abs(made), made))


def _integer_borders(rng: np.random.Generator, value: Value, size: float) -> Array:
    return _at_borders(np.zeros(value.shape), _extremes(rng, value, size))


def _negative(rng: np.random.Generator, value: Value, size: float) -> Array:
    return -1 - np.abs(rng.standard_normal(value.shape))


def _denormals(rng: np.random.Generator, value: Value, size: float) -> Array:
    """A tenth of the smallest normal number and less, so that products are denormal too."""
    return rng.standard_normal(value.shape) * (_smallest_normal(value.dtype) / 16)


def _smallest_normal(dtype: str) -> float:
    return float(np.finfo(dtype).smallest_normal)


def _large(rng: np.random.Generator, value: Value, size: float) -> Array:
    return rng.standard_normal(value.shape) * size


def _nan(rng: np.random.Generator, value: Value, size: float) -> Array:
    return np.full(value.shape, np.nan)


_Maker = Callable[[np.random.Generator, Value, float], Array]
_MAKERS: dict[str, _Maker] = {
    "nan": _nan, "random": _normal, "zeros": _zeros, "borders": _borders, "negative": _negative,
    "denormals": _denormals, "large": _large, "extremes": _large,
}  # fmt: skip
_INTEGER_MAKERS: dict[str, _Maker] = {
    "zeros": _zeros,
    "borders": _integer_borders,
    "extremes": _extremes,
}
