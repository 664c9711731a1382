"""How much of a difference rounding explains: what nobody can compute better in these dtypes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...graph import OpGraph, Value
from ...runtime.numpy_ops import all_values
from ...runtime.tolerance import ROUNDOFF, terms
from .inputs import Array, is_float
from .reference import Question


@dataclass(frozen=True)
class Rounding:
    """How far the result moves when the values on the way move by a few roundoffs."""

    slack: float  # of a floating-point output: added to its bound
    left_out: Array  # of an integer output: the elements that change

    @property
    def decides(self) -> bool:
        """Whether there is nothing left to compare."""
        return not np.isfinite(self.slack) or 2 * int(self.left_out.sum()) > self.left_out.size


def rounding(
    graph: OpGraph, asked: Question, expected: Sequence[Array], seed: int
) -> list[Rounding]:
    """For each output: what nobody can compute better in these dtypes.

    The reference runs again with every op's result moved by a few roundoffs. In a softmax of large
    numbers, or a value between two levels of a quantisation, such a step is no longer small.
    """
    values = asked.values or {}
    moved = [
        [_step(after, before) for after, before in zip(other, expected, strict=True)]
        for other in _moved(graph, asked, values, seed)
    ]
    found = []
    for n, value in enumerate(graph.outputs):
        steps = np.max([each[n].astype(np.float64) for each in moved], axis=0)
        if not is_float(value):
            found.append(Rounding(0.0, steps > 0))
            continue
        slack, size = 2 * float(steps.max(initial=0)), float(np.abs(expected[n]).max(initial=0))
        hopeless = slack > _HOPELESS * size
        found.append(Rounding(np.inf if hopeless else slack, np.zeros(steps.shape, bool)))
    return found


def _step(after: Array, before: Array) -> Array:
    """How far each element moved; of integers, which wrap around, and of bools: whether."""
    return abs(after - before) if before.dtype.kind == "f" else after != before


# All up, all down, and at random: of two numbers that cancel, one draw in two moves both alike.
_DRAWS = (1.0, -1.0, *[0.0] * 6)
_STEPS = 4  # roundoffs; of a sum of many numbers the root of their count, as its errors grow
_ONCE = 0.5  # roundoffs, which are the distance of neighbours
_LEAST_NORMAL = 2.0**-126  # of bfloat16 as of float32
_HOPELESS = 1e-2  # of the largest result: a wrong element would no longer show


def _moved(
    graph: OpGraph, asked: Question, values: Mapping[Value, Array], seed: int
) -> Iterator[list[Array]]:
    if not any(is_float(v) for call in graph.ops for v in call.outputs):
        yield [values[v] for v in graph.outputs]
        return
    # x (1 + erf(x / sqrt 2)) / 2 is as exact as x is large: far below 0 the 1 cancels.
    gelus = [call for call in graph.ops if call.kind == "gelu"]
    least = {c.outputs[0]: _size(values[c.inputs[0]]) for c in gelus}
    steps = {v: max(_STEPS, math.sqrt(terms(c))) for c in graph.ops for v in c.outputs}
    halves = dict(_rounded(graph))
    least.update(_of_denormals(graph, values, steps))
    for draw, sign in enumerate(_DRAWS):
        with np.errstate(all="ignore"):
            noise = _Noise(sign, seed + draw, least, steps, halves)
            inputs = [noise.on_input(v, a) for v, a in zip(graph.inputs, asked.inputs, strict=True)]
            after = all_values(graph, inputs, noise)
        yield [after[v] for v in graph.outputs]


def _rounded(graph: OpGraph) -> Iterator[tuple[Value, float]]:
    """What is of halves, or may be rounded to them once, and a roundoff of these: more is no
    kernel's.
    """
    for call in graph.ops:
        if call.kind == "half_weight":
            yield call.inputs[0], ROUNDOFF[call.inputs[0].dtype]
        if call.attrs.get("may_round_to"):
            yield from ((side, ROUNDOFF[call.attrs["may_round_to"]]) for side in call.inputs)


def _of_denormals(
    graph: OpGraph, values: Mapping[Value, Array], steps: Mapping[Value, float]
) -> Iterator[tuple[Value, float]]:
    """Products of bfloat16, and sizes of which so many roundoffs are what they lose where denormal
    factors count as zero.
    """
    wide = {c.outputs[0] for c in graph.ops if c.kind == "half_weight"}
    for call in graph.ops:
        for weight in wide.intersection(call.inputs):
            lost = _LEAST_NORMAL * terms(call) * _size(values[weight])
            yield call.outputs[0], lost / (steps[call.outputs[0]] * ROUNDOFF["float32"])


def no_worse(ours: Sequence[Array], theirs: Sequence[Array], exact: Sequence[Array]) -> bool:
    """Whether a result is wrong by little, and by no more than twice what TVM's own build is.

    A layer_norm of rows of two nearly equal numbers rounds their mean, whoever computes it.
    """

    def off(found: Array, wanted: Array) -> float:
        error = np.abs(found.astype(np.float64) - wanted)
        return float(error.max(initial=0)) if np.isfinite(error).all() else np.inf

    return all(
        a.dtype.kind == "f" and off(a, c) <= min(2 * off(b, c), _LITTLE * float(np.abs(c).max()))
        for a, b, c in zip(ours, theirs, exact, strict=True)
        if a.size
    )


_LITTLE = 1e-4  # of the largest result


class _Noise:
    """Moves results by some roundoffs of their largest: all up, all down, or (0) at random; some
    by no less than of a size of their own.

    Inputs are moved by as much of each element, at random: within an op such as layer_norm, which
    subtracts a mean, no better result than that of some inputs as near as these can be had.
    """

    def __init__(
        self,
        sign: float,
        seed: int,
        least: dict[Value, float],
        steps: dict[Value, float],
        halves: dict[Value, float],
    ):
        self.sign, self.rng = sign, np.random.default_rng(seed)
        self.least, self.steps, self.halves = least, steps, halves

    def on_input(self, value: Value, array: Array) -> Array:
        if not is_float(value):
            return array
        signs = self.rng.choice([-1.0, 1.0], array.shape)
        # What such a weight is multiplied by may be rounded to its dtype once, and no more is.
        step = _STEPS * ROUNDOFF[value.dtype]
        if value in self.halves:
            step = _ONCE * self.halves[value]
        return array.astype(np.float64) * (1 + signs * step)

    def __call__(self, value: Value, array: Array) -> Array:
        if not is_float(value):
            return array
        if value in self.halves:
            array = self.on_input(value, array)
        signs = self.sign or self.rng.choice([-1.0, 1.0], array.shape)
        size = max(_size(array), self.least.get(value, 0.0))
        return array + signs * self.steps[value] * ROUNDOFF[value.dtype] * size


def _size(array: Array) -> float:
    return float(np.abs(array).max(initial=0))
