"""What a kernel must compute: NumPy's meaning of its ops, and the composite's own reference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UnsupportedOp
from ...graph import OpCall, OpGraph, Value
from ...language.growing import Elementwise, Repeat
from ...language.nodes import Either, Item, Node, Op
from ...match.match import Match
from ...ops.vocabulary import complete
from ...runtime.numpy_ops import all_values
from ...runtime.tolerance import ROUNDOFF, terms
from .inputs import LARGE, Array, arrays, is_float

NUMPY, OWN_REFERENCE, TVM = "NumPy", "the composite's reference", "TVM's own build"


@dataclass(frozen=True)
class Question:
    """The inputs of one run, and what the ops mean on them in NumPy (None: no meaning known)."""

    kind: str
    inputs: Sequence[Array]
    values: Mapping[int, Array] | None
    why_not: str = ""  # the run is no use: why


def question(graph: OpGraph, constants: Mapping[int, Array], kind: str, seed: int) -> Question:
    """Make the inputs of a kind; a `large` is made smaller until the result is finite."""
    asked = Question(kind, [], None, "no size gives a finite result")
    for size in LARGE if kind == "large" else LARGE[:1]:
        asked = _question(graph, constants, kind, seed, size)
        if not asked.why_not:
            break
    return asked


def _question(
    graph: OpGraph, constants: Mapping[int, Array], kind: str, seed: int, size: float
) -> Question:
    made = arrays(graph, constants, kind, seed, size)
    if kind == "nan":
        return Question(kind, made, None)
    try:
        with np.errstate(all="ignore"):
            values = all_values(graph, made)
    except UnsupportedOp as err:
        return Question(kind, made, None, str(err) if kind == "large" else "")
    return Question(kind, made, values, _too_large(graph, values, kind))


def _too_large(graph: OpGraph, values: Mapping[int, Array], kind: str) -> str:
    """Why a kernel of the graph's own dtypes cannot compute these values, or ''."""
    for call in graph.ops:
        for value in (v for v in call.outputs if is_float(v) and id(v) in values):
            array, limit = values[id(value)], _largest(value.dtype)
            if kind == "large":  # squares, and sums of 4096 of them, must fit
                limit = (limit / 4096) ** 0.5
            if not np.isfinite(array).all() or np.abs(array).max(initial=0) > limit:
                return f"{call.name} is not finite in {value.dtype} on it"
    return ""


def _largest(dtype: str) -> float:
    return 3e38 if dtype == "bfloat16" else float(np.finfo(dtype).max)


def own_reference(match: Match, graph: OpGraph, values: Mapping[int, Array]) -> list[Array] | None:
    """The composite's reference on the values of its arguments; None where it does not apply.

    A reference is NumPy of the pattern as it stands. A match with other attributes (strides, an
    axis), or without an optional argument, is another function.
    """
    reference = match.composite.reference
    if reference is None or not _is_the_pattern(match, graph):
        return None
    with np.errstate(all="ignore"):
        found = reference(**{name: values[id(v)] for name, v in match.args.items()})
    return [np.asarray(a) for a in (found if isinstance(found, (list, tuple)) else [found])]


def _is_the_pattern(match: Match, graph: OpGraph) -> bool:
    """Whether every op is as the pattern's own text says, all attributes at their defaults."""
    if set(match.args) != set(match.composite.arg_names):
        return False
    nodes = _as_emitted(match.composite.outputs)
    kinds = Counter(node.kind for node in nodes)
    if kinds != Counter(call.kind for call in match.ops):
        return False
    return all(any(_says(node, call) for node in nodes) for call in match.ops)


def _as_emitted(outputs: Sequence[Node]) -> list[Op]:
    """The ops of a pattern all of whose arguments are given: the first option of each choice."""
    found: dict[int, Op] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if isinstance(node, Either):
            stack.append(node.options[0])
        elif isinstance(node, (Item, Elementwise, Repeat)):
            stack.append(node.of)
        elif isinstance(node, Op) and id(node) not in found:
            found[id(node)] = node
            stack.extend(node.inputs)
    return list(found.values())


# Attributes that follow from the types, or that no importer leaves at another value.
_FREE_ATTRS = frozenset({"out_dtype", "out_layout", "ties"})


def _says(node: Op, call: OpCall) -> bool:
    """Whether a pattern's op, written as a program, would have this op's attributes."""
    if node.kind != call.kind:
        return False
    wanted = complete(node.kind, {k: v for k, v in node.attrs.items() if not callable(v)})
    for name, found in call.attrs.items():
        if name in _FREE_ATTRS:
            continue
        if name not in wanted or _plain(wanted[name], name, call) != _plain(found, name, call):
            return False
    return True


def _plain(value: Any, name: str, call: OpCall) -> Any:
    if name == "axis" and isinstance(value, int):
        return value % call.outputs[0].ndim
    return tuple(value) if isinstance(value, list) else value


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
        [abs(after - before) for after, before in zip(other, expected, strict=True)]
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


# All up, all down, and at random: of two numbers that cancel, one draw in two moves both alike.
_DRAWS = (1.0, -1.0, *[0.0] * 6)
_STEPS = 4  # roundoffs; of a sum of many numbers the root of their count, as its errors grow
_HOPELESS = 1e-2  # of the largest result: a wrong element would no longer show


def _moved(
    graph: OpGraph, asked: Question, values: Mapping[int, Array], seed: int
) -> Iterator[list[Array]]:
    if not any(is_float(v) for call in graph.ops for v in call.outputs):
        yield [values[id(v)] for v in graph.outputs]
        return
    # x (1 + erf(x / sqrt 2)) / 2 is as exact as x is large: far below 0 the 1 cancels.
    gelus = [call for call in graph.ops if call.kind == "gelu"]
    least = {id(c.outputs[0]): _size(values[id(c.inputs[0])]) for c in gelus}
    steps = {id(v): max(_STEPS, math.sqrt(terms(c))) for c in graph.ops for v in c.outputs}
    for draw, sign in enumerate(_DRAWS):
        with np.errstate(all="ignore"):
            noise = _Noise(sign, seed + draw, least, steps)
            inputs = [noise.on_input(v, a) for v, a in zip(graph.inputs, asked.inputs, strict=True)]
            after = all_values(graph, inputs, noise)
        yield [after[id(v)] for v in graph.outputs]


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

    def __init__(self, sign: float, seed: int, least: dict[int, float], steps: dict[int, float]):
        self.sign, self.rng = sign, np.random.default_rng(seed)
        self.least, self.steps = least, steps

    def on_input(self, value: Value, array: Array) -> Array:
        if not is_float(value):
            return array
        signs = self.rng.choice([-1.0, 1.0], array.shape)
        return array.astype(np.float64) * (1 + signs * _STEPS * ROUNDOFF[value.dtype])

    def __call__(self, value: Value, array: Array) -> Array:
        if not is_float(value):
            return array
        signs = self.sign or self.rng.choice([-1.0, 1.0], array.shape)
        size = max(_size(array), self.least.get(id(value), 0.0))
        return array + signs * self.steps[id(value)] * ROUNDOFF[value.dtype] * size


def _size(array: Array) -> float:
    return float(np.abs(array).max(initial=0))
