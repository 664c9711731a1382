"""Recurrent layers: LSTM, GRU and RNN over a whole sequence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...language.case import Case
from ...language.composite import Composite, require
from ...language.match.match import Match
from ...language.nodes import Program
from ...language.pattern import op
from ...tvm.types import Attr, DFPattern
from ..kernels.recurrent.kernel import LSTM_LEVELS, recurrent
from ..kernels.words import BYTE

if TYPE_CHECKING:
    from ...language.nodes import Node


def _check(match: Match) -> None:
    dtypes = sorted({v.dtype for call in match.ops for v in (*call.inputs, *call.outputs)})
    require(dtypes == ["float32"], f"only float32 is scheduled, found {', '.join(dtypes)}")


def _lstm(**attrs: Attr) -> Program:
    def layer(gates: Node, weight: Node, hidden: Node, cell: Node) -> tuple[Node, ...]:
        both = op.lstm(gates, weight, hidden, cell, **attrs)
        return both[0], both[1]

    return layer


def _of_levels(
    gates: Node, weight: Node, w_scale: Node, w_zero: Node, hidden: Node, cell: Node
) -> tuple[Node, ...]:
    levels = op.dequantize(weight, w_scale, w_zero)
    both = op.lstm(gates, levels, hidden, cell, quantized_state=True)
    return both[0], both[1]


def _check_levels(match: Match) -> None:
    """A scale of each direction, or of all."""
    require(match.weight.dtype in BYTE, f"only bytes are multiplied, found {match.weight.type}")
    (call,) = match.of("dequantize")
    axis, sizes = call.attrs["axis"] % 3, {(), (1,), (match.weight.shape[0],)}
    shape = match.w_scale.shape
    is_of_all = math.prod(shape) == 1
    require(is_of_all or (axis == 0 and shape in sizes), f"scales {list(shape)} along axis {axis}")
    middle = 128 if match.weight.dtype == "uint8" else 0
    require(match.w_zero.scalar == middle, f"the weight's zero point is not {middle}")
    dtypes = {v.dtype for v in (match.gates, match.hidden, match.cell, call.outputs[0])}
    require(dtypes == {"float32"}, f"only float32 is scheduled, found {', '.join(sorted(dtypes))}")


def _lstm_of_levels(zero: int, **attrs: Attr) -> Program:
    def layer(gates: Node, weight: Node, hidden: Node, cell: Node) -> tuple[Node, ...]:
        levels = op.dequantize(weight, 2.0**-9, zero)
        both = op.lstm(gates, levels, hidden, cell, quantized_state=True, **attrs)
        return both[0], both[1]

    return layer


def _peephole_lstm(**attrs: Attr) -> Program:
    def layer(
        gates: Node, weight: Node, hidden: Node, cell: Node, peepholes: Node
    ) -> tuple[Node, ...]:
        both = op.peephole_lstm(gates, weight, hidden, cell, peepholes, **attrs)
        return both[0], both[1]

    return layer


def _gru(**attrs: Attr) -> Program:
    return lambda gates, weight, hidden, bias: op.gru(gates, weight, hidden, bias, **attrs)


def _rnn(**attrs: Attr) -> Program:
    return lambda gates, weight, hidden: op.rnn(gates, weight, hidden, **attrs)


BOTH = {"direction": "bidirectional"}
WHY = "a step's products, gates and states are in registers; no step is another kernel"


def _composite(name: str, pattern: DFPattern, *cases: Case) -> Composite:
    return Composite(name, pattern, check=_check, kernel=recurrent(name), why=WHY, cases=cases)


def _sizes(gates: int, length: int, batch: int, units: int, sides: int = 1) -> dict[str, Any]:
    return {
        "gates": (length, batch, sides * gates * units),
        "weight": (sides, gates * units, units),
        "hidden": (sides, batch, units),
        "constants": ["weight"],
    }


lstm = _composite(
    "lstm", _lstm(),
    Case(_lstm(), name="forward", cell=(1, 1, 32), **_sizes(4, 5, 1, 32)),
    Case(
        _lstm(direction="reverse", clip=0.5, input_forget=True), name="tail",
        cell=(1, 3, 21), **_sizes(4, 4, 3, 21),
    ),
    Case(
        _lstm(activations="hard_sigmoid:0.3:0.6 relu softsign sigmoid tanh tanh", **BOTH),
        name="both", cell=(2, 1, 17), **{**_sizes(4, 3, 2, 17, 2), "hidden": (2, 1, 17)},
    ),
    Case(_lstm(quantized_state=True), name="rounded", cell=(1, 1, 32), **_sizes(4, 5, 1, 32)),
    Case(
        _lstm(quantized_state=True, activations="sigmoid tanh tanh " * 2, **BOTH),
        name="rounded tail", cell=(2, 3, 21), **{**_sizes(4, 4, 3, 21, 2), "hidden": (2, 1, 21)},
    ),
    Case(_lstm(), name="step", cell=(1, 1, 128), **_sizes(4, 1, 1, 128)),
)  # fmt: skip


def _sizes_of_levels(
    dtype: str, length: int, batch: int, units: int, sides: int = 1
) -> dict[str, Any]:
    found = _sizes(4, length, batch, units, sides)
    weight = (found["weight"], dtype)
    return {**found, "cell": (sides, batch, units), "weight": weight}


lstm_int8 = Composite(
    "lstm_int8",
    _of_levels,
    check=_check_levels,
    kernel=LSTM_LEVELS,
    why="bytes are multiplied several at a time; a step's products, gates and states are in "
    "registers",
    cases=(
        Case(_lstm_of_levels(0), name="forward", **_sizes_of_levels("int8", 5, 1, 32)),
        Case(
            _lstm_of_levels(128, activations="sigmoid tanh tanh " * 2, **BOTH), name="tail",
            **_sizes_of_levels("uint8", 4, 3, 21, 2),
        ),
    ),
)  # fmt: skip

peephole_lstm = _composite(
    "peephole_lstm", _peephole_lstm(),
    Case(
        _peephole_lstm(), name="tail", cell=(1, 2, 19), peepholes=(1, 57), **_sizes(4, 3, 2, 19)
    ),
    Case(
        _peephole_lstm(activations="sigmoid tanh tanh " * 2, **BOTH), name="both",
        cell=(2, 2, 16), peepholes=(2, 48), **_sizes(4, 3, 2, 16, 2),
    ),
)  # fmt: skip

gru = _composite(
    "gru", _gru(),
    Case(_gru(), name="tail", bias=(1, 21), **_sizes(3, 4, 3, 21)),
    Case(
        _gru(linear_before_reset=True), name="linear", bias=(1, 48), **_sizes(3, 5, 1, 48)
    ),
    Case(
        _gru(activations="sigmoid tanh " * 2, linear_before_reset=True, **BOTH), name="both",
        bias=(2, 20), **_sizes(3, 3, 9, 20, 2),
    ),
    Case(
        _gru(direction="reverse", activations="hard_sigmoid:0.2:0.5 softplus"), name="reverse",
        bias=(1, 16), **_sizes(3, 4, 1, 16),
    ),
)  # fmt: skip

rnn = _composite(
    "rnn", _rnn(),
    Case(_rnn(), name="tail", **_sizes(1, 6, 3, 21)),
    Case(
        _rnn(activations="leaky_relu:0.1 elu:0.7", **BOTH), name="both", **_sizes(1, 4, 2, 33, 2)
    ),
)  # fmt: skip
