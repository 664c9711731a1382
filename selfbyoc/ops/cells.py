"""Cells of recurrent layers: what one step computes of an element, in TensorIR and in NumPy.

A step has the products of its input (`gates`) and of the state before it with the weights of each
gate; a cell is the arithmetic from these to the new state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tvm import dtype_of, tir
from ..tvm.types import Attrs, PrimExpr, PrimVar
from . import mathfn as M

Array = np.ndarray
Element = PrimExpr | Array  # of expressions, or of arrays
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
GATES = {"lstm": 4, "peephole_lstm": 4, "gru": 3, "rnn": 1}
LSTM = ("lstm", "peephole_lstm")
FUNCTIONS = {"lstm": 3, "peephole_lstm": 3, "gru": 2, "rnn": 1}  # activations of a direction


def _const(x: PrimExpr, value: float) -> PrimExpr:
    return tir.const(value, dtype_of(x))


def once(value: PrimExpr, read: Callable[[PrimVar], PrimExpr]) -> PrimExpr:
    """An expression that reads another as often as it likes: that one is written once. What is
    exponential names its argument 50 times; TVM's passes would visit each.
    """
    var = tir.Var("value", dtype_of(value))
    return tir.Let(var, value, read(var))


def _relu(x: PrimExpr) -> PrimExpr:
    return tir.Max(_const(x, 0), x)


def _elu(x: PrimExpr, alpha: float) -> PrimExpr:
    below = tir.Min(_const(x, 0), x)
    return _relu(x) + _const(x, alpha) * (M.exp(below) - _const(x, 1))


def _softplus(x: PrimExpr) -> PrimExpr:
    return _relu(x) + once(M.exp(-tir.abs(x)) + _const(x, 1), M.log)


# Name -> the function of an element, and its alpha and beta where nobody gives them.
_EXPRS: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "sigmoid": (M.sigmoid, ()),
    "tanh": (M.tanh, ()),
    "relu": (_relu, ()),
    "softsign": (lambda x: x / (tir.abs(x) + _const(x, 1)), ()),
    "softplus": (_softplus, ()),
    "affine": (lambda x, a, b: x * _const(x, a) + _const(x, b), (1.0, 0.0)),
    "scaled_tanh": (lambda x, a, b: M.tanh(x * _const(x, b)) * _const(x, a), (1.0, 1.0)),
    "hard_sigmoid": (
        lambda x, a, b: M.clamp(x * _const(x, a) + _const(x, b), _const(x, 0), _const(x, 1)),
        (0.2, 0.5),
    ),
    "leaky_relu": (lambda x, a: tir.Select(x >= _const(x, 0), x, x * _const(x, a)), (0.01,)),
    "thresholded_relu": (lambda x, a: tir.Select(x >= _const(x, a), x, _const(x, 0)), (1.0,)),
    "elu": (_elu, (1.0,)),
}
_ARRAYS: dict[str, Callable[..., Array]] = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softplus": lambda x: np.logaddexp(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "scaled_tanh": lambda x, a, b: a * np.tanh(b * x),
    "hard_sigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "leaky_relu": lambda x, a: np.where(x >= 0, x, a * x),
    "thresholded_relu": lambda x, a: np.where(x >= a, x, 0),
    "elu": lambda x, a: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
}
NAMES = tuple(_EXPRS)


def defaults(name: str) -> tuple[float, ...]:
    """Alpha and beta of an activation, as many as it has, where nobody gives them."""
    return _EXPRS[name][1]


def parsed(text: str) -> list[tuple[str, tuple[float, ...]]]:
    """`"sigmoid leaky_relu:0.1"`: names, each with the numbers after it; ValueError for others."""
    found = []
    for word in text.split():
        name, *given = word.split(":")
        if name not in _EXPRS:
            raise ValueError(f"expected activations of {', '.join(NAMES)}, found {name!r}")
        numbers = tuple(map(float, given)) or defaults(name)
        if len(numbers) != len(defaults(name)) or not all(map(math.isfinite, numbers)):
            raise ValueError(f"{name}: expected {len(defaults(name))} numbers, found {word!r}")
        found.append((name, numbers))
    return found


@dataclass(frozen=True)
class Cell:
    """The arithmetic of a step, of expressions or of arrays.

    `activations` are of one direction, `words` what they are called; `limit` is done to what goes
    into them; `once(value, read)` reads a value several times.
    """

    kind: str
    words: tuple[str, ...]
    activations: tuple[Callable[[Any], Any], ...]
    limit: Callable[[Any], Any]
    once: Callable[[Any, Callable[[Any], Any]], Any]
    attrs: Mapping[str, Any]

    @property
    def gates(self) -> int:
        """Products of a step, each with weights of its own."""
        return GATES[self.kind]

    @property
    def rounds(self) -> bool:
        """Whether a step's products are of the state as 8 bits give it back."""
        return bool(self.attrs.get("quantized_state", False))

    def gate(self, n: int, sum_: Element) -> Element:
        """The activation number n of a sum."""
        return self.activations[n](self.limit(sum_))

    def cell_state(
        self, sums: Sequence[Element], before: PrimExpr, peepholes: Sequence[PrimExpr] = ()
    ) -> Element:
        """Of an LSTM, whose gates are input, output, forget and candidate."""
        look = [p * before for p in peepholes] or [None, None, None]
        enter, new = self.gate(0, _plus(sums[0], look[0])), self.gate(1, sums[3])
        if self.attrs["input_forget"]:
            return self.once(enter, lambda share: (1 - share) * before + share * new)
        return self.gate(0, _plus(sums[2], look[2])) * before + enter * new

    def hidden_state(
        self, sums: Sequence[Element], cell: Element, peepholes: Sequence[PrimExpr] = ()
    ) -> Element:
        """Of an LSTM, from its new cell state."""
        look = peepholes[1] * cell if len(peepholes) else None
        return self.gate(0, _plus(sums[1], look)) * self.activations[2](cell)

    def reset(self, sums: Sequence[PrimExpr | None]) -> PrimExpr:
        """Of a GRU, whose gates are update, reset and candidate: how much of the state it sees."""
        return self.gate(0, sums[1])

    def mixed(self, sums: Sequence[PrimExpr], candidate: PrimExpr, before: PrimExpr) -> PrimExpr:
        """The state of a GRU: between its candidate, of this sum, and the one before."""
        return self.between(self.gate(0, sums[0]), candidate, before)

    def between(self, update: PrimExpr, candidate: PrimExpr, before: PrimExpr) -> PrimExpr:
        """The same of an update gate that is known."""
        new = self.gate(1, candidate)
        return self.once(update, lambda share: (1 - share) * new + share * before)


def _plus(value: Element, more: PrimExpr | None) -> Element:
    return value if more is None else value + more


def cells(kind: str, attrs: Attrs, arrays: bool = False) -> list[Cell]:
    """The cell of each direction; of arrays, or of expressions."""
    words, count = attrs["activations"].split(), FUNCTIONS[kind]
    named = parsed(attrs["activations"])
    directions = len(DIRECTIONS[attrs["direction"]])
    if len(named) != count * directions:
        text = f"{attrs['direction']}: expected {count * directions} activations"
        raise ValueError(f"{text}, found {attrs['activations']!r}")
    made = tuple(_bound(name, numbers, arrays) for name, numbers in named)
    limit = _limit(float(attrs["clip"]), arrays)
    reads = _again if arrays else once
    parts = [slice(n * count, (n + 1) * count) for n in range(directions)]
    return [Cell(kind, tuple(words[part]), made[part], limit, reads, attrs) for part in parts]


def _again(value: np.ndarray, read: Callable[[Array], Array]) -> np.ndarray:
    return read(value)


def _bound(name: str, numbers: Sequence[float], arrays: bool) -> Callable[[Element], Element]:
    if arrays:
        return lambda x: _ARRAYS[name](x, *numbers)
    return lambda x: once(x, lambda value: _EXPRS[name][0](value, *numbers))


def _limit(most: float, arrays: bool) -> Callable[[Element], Element]:
    if not most:
        return lambda x: x
    if arrays:
        return lambda x: np.clip(x, -most, most)
    return lambda x: M.clamp(x, _const(x, -most), _const(x, most))
